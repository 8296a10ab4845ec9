"""`freshlane init`: what it finds, and that what it writes can be run."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.cli.finding.lanes_text import lanes_text
from supervisor.cli.finding.models import Model, find_models
from supervisor.cli.finding.plan import MOST_LANES, ideas
from supervisor.cli.finding.servers import Running, installed_servers, running_servers
from supervisor.cli.finding.usable import usable
from supervisor.config.load import load_content
from supervisor.presets import PRESETS
from supervisor.settings import Settings
from supervisor.shell.machine.holdings import USUAL_PORTS
from tests.cli.conftest import Run
from tests.conftest import FakeWorkerFactory, find_free_port, port_is_open, start_worker
from tests.fakes import fake_command


def put_in_hub(home: Path, hub_id: str, config: dict[str, object], size: int = 1000) -> None:
    snapshot = home / ".cache/huggingface/hub" / f"models--{hub_id.replace('/', '--')}" / "snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(config))
    (snapshot / "model.safetensors").write_bytes(bytes(size))


def put_program(folder: Path, name: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)


def settings_of(text: str) -> Settings:
    return load_content(text.encode(), "lanes.yaml", Path("/")).settings


CHAT = {"architectures": ["Qwen3ForCausalLM"]}


@pytest.mark.xdist_group("usual_ports")
async def test_init_and_check_warn_of_a_model_that_a_server_holds_already(freshlane: Run, tmp_path: Path) -> None:
    put_in_hub(tmp_path, "org/held-4bit", {**CHAT, "quantization": {"bits": 4}})
    port = next(port for port in USUAL_PORTS if not port_is_open(port))
    holder = await start_worker(fake_command(model="org/held-4bit"), port)
    written, checked = await freshlane("init"), await freshlane("check")
    await holder.end()
    for ended in (written, checked):
        assert ended.code == 0
        assert f"(pid {holder.pid}) on port {port} already holds org/held-4bit; `kill -INT {holder.pid}` ends it" in (
            " ".join(ended.err.split())
        )


async def test_what_init_writes_passes_check(freshlane: Run, tmp_path: Path) -> None:
    put_program(tmp_path / "bin", "llama-server")
    put_in_hub(tmp_path, "mlx-community/Qwen3-8B-4bit", {**CHAT, "quantization": {"bits": 4}})
    gguf = tmp_path / ".lmstudio/models/bartowski/Big Model (Q4)/big-00001-of-00002.gguf"
    gguf.parent.mkdir(parents=True)
    gguf.write_bytes(bytes(500))
    path = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    ended = await freshlane("init", env=path)
    assert ended.code == 0, ended
    checked = await freshlane("check", env=path)
    assert checked.code == 0, checked
    lanes = settings_of((tmp_path / "lanes.yaml").read_text()).lanes
    assert "qwen3-8b-4bit" in lanes
    llama = lanes["big-model-q4"]
    assert (llama.preset, llama.worker_model) == ("llama-server", "big-model-q4")
    assert str(gguf) in (tmp_path / "lanes.yaml").read_text()


async def test_a_file_that_is_there_is_never_touched(freshlane: Run, tmp_path: Path) -> None:
    (tmp_path / "lanes.yaml").write_text("mine")
    ended = await freshlane("init")
    assert ended.code == 2
    assert "is there already and stays as it is" in ended.err
    assert (tmp_path / "lanes.yaml").read_text() == "mine"


async def test_a_link_that_leads_nowhere_is_not_followed(freshlane: Run, tmp_path: Path) -> None:
    (tmp_path / "lanes.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert (await freshlane("init")).code == 2
    assert not (tmp_path / "elsewhere.yaml").exists()


async def test_it_can_be_printed_only(freshlane: Run, tmp_path: Path) -> None:
    ended = await freshlane("init", "--print")
    assert ended.code == 0
    assert settings_of(ended.out).lanes
    assert not (tmp_path / "lanes.yaml").exists()


async def test_on_a_bare_machine_the_lane_is_the_model_that_comes_along() -> None:
    assert [lane.model for lane in settings_of(lanes_text([])).lanes.values()] == ["smollm2-135m"]


async def test_a_running_server_is_found_and_becomes_a_lane_that_only_watches(fake_worker: FakeWorkerFactory) -> None:
    worker = await fake_worker(model="qwen3:8b")
    nobody = find_free_port()
    found = running_servers([nobody, worker.port])
    assert found == [Running(worker.url, ("qwen3:8b",))]
    lane = settings_of(lanes_text(ideas([], {}, found, is_macos=False))).lanes["qwen3-8b"]
    assert (lane.attach, lane.served_model) == (worker.url, "qwen3:8b")


def test_half_a_download_and_what_answers_no_chat_are_left_out(tmp_path: Path) -> None:
    put_in_hub(tmp_path, "org/chat", CHAT)
    put_in_hub(tmp_path, "org/bert", {"architectures": ["BertModel"]})
    put_in_hub(tmp_path, "org/chat-Draft", CHAT)
    put_in_hub(tmp_path, "org/half", CHAT)
    half = tmp_path / ".cache/huggingface/hub/models--org--half/snapshots/abc/model.safetensors"
    half.unlink()
    half.symlink_to(tmp_path / "blobs/nothing")
    assert [model.reference for model in find_models(tmp_path, {})] == ["org/chat"]


def test_the_cache_lies_where_its_variables_say(tmp_path: Path) -> None:
    put_in_hub(tmp_path / "other", "org/chat", CHAT)
    hub = tmp_path / "other/.cache/huggingface/hub"
    assert [model.name for model in find_models(tmp_path, {"HF_HUB_CACHE": str(hub)})] == ["org/chat"]
    assert find_models(tmp_path, {}) == []


def test_servers_are_found_on_the_path_by_the_presets_programs(tmp_path: Path) -> None:
    put_program(tmp_path / "bin", "vllm")
    assert installed_servers(str(tmp_path / "bin")) == {"vllm": str(tmp_path / "bin/vllm")}


def test_only_the_first_lane_loads_at_once_and_only_a_few_are_live() -> None:
    models = [Model(f"org/m{number}", f"org/m{number}", "mlx", 1000) for number in range(6)]
    text = lanes_text(ideas(models, {}, [], is_macos=True))
    lanes = list(settings_of(text).lanes.values())
    assert [lane.start for lane in lanes] == ["eager", "on_demand", "on_demand"]
    assert len(lanes) == MOST_LANES
    # taking the # away gives the others
    whole = text.replace("  #   ", "    ").replace("  # m", "  m").replace("  # smol", "  smol")
    assert len(settings_of(whole).lanes) == 7


NAMES = st.text(min_size=1, max_size=60)


@settings(deadline=None, max_examples=40)
@given(
    models=st.lists(
        st.builds(Model, NAMES, NAMES.map("/".__add__), st.sampled_from(["mlx", "gguf"]), st.just(9)), max_size=8
    ),
    running=st.lists(
        st.builds(
            Running,
            st.integers(1024, 65_535).map("http://127.0.0.1:{}".format),
            st.lists(NAMES, max_size=2).map(tuple),
            st.sampled_from([None, *PRESETS]),
        ),
        max_size=3,
        unique_by=lambda server: server.url,
    ),
)
def test_whatever_models_are_called_the_file_passes_check(models: list[Model], running: list[Running]) -> None:
    found = usable(ideas(models, dict.fromkeys(PRESETS, "/bin/x"), running, is_macos=True))
    assert settings_of(lanes_text(found)).lanes
