"""Known servers: what a preset fills in, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.config.load import load_content
from supervisor.presets import PRESETS
from supervisor.presets.filling import fill_in
from supervisor.settings import LaneSettings
from tests.config.loading import FOLDER


def lane_of(body: str) -> LaneSettings:
    content = f"lanes: {{a: {{{body}}}}}".encode()
    return load_content(content, "lanes.yaml", FOLDER, {}).settings.lanes["a"]


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_makes_a_whole_lane_of_a_model(name: str) -> None:
    lane = lane_of(f"preset: {name}, model: m")
    assert lane.command
    assert not lane.is_ours
    assert "{port}" in " ".join([*lane.command, *lane.env.values()])
    assert not any("{served}" in word for word in lane.command)


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_listens_on_this_machine_only(name: str) -> None:
    lane = lane_of(f"preset: {name}, model: m")
    assert lane.command is not None
    assert "127.0.0.1" in [*lane.command, *lane.env.values()]


def test_omlx_gets_its_port_by_environment_and_never_by_flag() -> None:
    lane = lane_of("preset: omlx, env: {HF_HOME: /models}")
    assert lane.command == ("omlx", "serve")
    assert lane.env == {"OMLX_HOST": "127.0.0.1", "OMLX_PORT": "{port}", "HF_HOME": "/models"}
    assert lane.replace == "in_place"


def test_mlx_lm_is_asked_for_its_default_model_and_stopped_by_sigint() -> None:
    lane = lane_of("preset: mlx-lm, model: org/m")
    assert lane.worker_model == "default_model"
    assert lane.stop_signal == "INT"


def test_the_served_name_goes_into_the_command() -> None:
    assert lane_of("preset: vllm, model: m, served_model: x").command == (
        *("vllm", "serve", "{model}", "--served-model-name", "x", "--host", "127.0.0.1", "--port", "{port}"),
    )
    assert lane_of("preset: vllm, model: m").worker_model == "a"


def test_a_lanes_own_keys_win() -> None:
    lane = lane_of('preset: mlx-lm, command: [mine, "{port}"], stop_signal: TERM, served_model: x')
    assert (lane.command, lane.stop_signal, lane.worker_model) == (("mine", "{port}"), "TERM", "x")
    assert lane_of('preset: vllm, command: [mine, "{port}"]').served_model is None


def test_defaults_win_over_a_preset() -> None:
    content = b"defaults: {stop_signal: TERM}\nlanes: {a: {preset: mlx-lm, model: m}}"
    assert load_content(content, "lanes.yaml", FOLDER, {}).settings.lanes["a"].stop_signal == "TERM"


def test_an_attached_server_takes_only_what_is_said_to_it() -> None:
    lane = lane_of("preset: omlx, attach: http://127.0.0.1:8000")
    assert lane.command is None
    assert lane.env == {}
    assert lane_of("preset: mlx-lm, attach: http://h").worker_model == "default_model"


def test_freetoken_also_takes_the_port_above() -> None:
    assert PRESETS["freetoken"].extra_ports == (1,)


@pytest.mark.parametrize("written", [{}, {"preset": "nope"}, {"preset": ["omlx"]}, {"preset": "omlx", "env": 5}])
def test_unchecked_values_pass_through(written: dict[str, Any]) -> None:
    filled = fill_in("a", written)
    assert {key: filled[key] for key in written} == written
