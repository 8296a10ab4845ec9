"""Good files: what they become."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from supervisor.config import ConfigError, load
from supervisor.settings import LaneSettings, Settings
from tests.config.loading import FOLDER, loaded

REPOSITORY = Path(__file__).parents[2]


def lane_of(body: str) -> LaneSettings:
    return loaded(f"lanes: {{a: {{{body}}}}}").settings.lanes["a"]


def test_the_default_lanes_yaml_loads_without_warnings() -> None:
    found = load(REPOSITORY / "lanes.yaml")
    assert found.warnings == ()
    assert found.settings.lanes["smollm2"].is_ours
    assert found.settings.lanes["smollm2"].names == ("smollm2", "default")
    assert (found.settings.listen_host, found.settings.listen_port) == ("127.0.0.1", 7411)


def test_every_key_at_its_default_is_the_same_as_no_key() -> None:
    full = """\
        listen: 127.0.0.1:7411
        api_keys: []
        admin_keys: []
        allowed_hosts: []
        allowed_origins: []
        max_body: 64MB
        fleet: {max_recycling: 1, max_starting: 1, memory_budget: auto, shutdown_timeout: 60s}
        log: {format: auto, level: info, max_size: 50MB, keep: 5}
        history: {keep: 90d}
        on_recycle: {webhook: null, command: null}
        defaults: {}
        lanes:
          a:
            model: smollm2-135m
            speculation: {method: auto}
            prefix: {ram: auto, disk: 8GB, handoff: 4GB, timeout: 10s}
            health: /health
            kind: chat
            start: eager
            start_timeout: 10m
            warm_timeout: 60s
            max_inflight: 8
            max_queue: 64
            hold: {timeout: 240s, comments_after: 15s}
            drain_timeout: 10m
            stop_signal: TERM
            stop_timeout: auto
            kill: if_hung
            replace: auto
            memory: {timeout: 60s}
            hang: {after: 90s, pulse: 60s}
            canary: {every: 5m, prompt_tokens: [256, 3072], max_tokens: 64, max_time: 4s, idle_for: 5s, timeout: auto,
                     budget: 1%, burst_budget: 2%, hold: 30s, force_after: 30m, host_check: auto}
            baseline: {fresh_for: 10m, fresh_requests: 20}
            degraded: {below: 0.89, severe: 0.50}
            recycle: {mode: auto, max_per_hour: 2, max_per_day: 8, min_uptime: 10m, wait_idle: 15m, max_hold: 240s,
                      window: null, learn: off, verify_timeout: 10m}
            power: busy
        """
    assert loaded(full).settings == loaded("lanes: {a: {model: smollm2-135m}}").settings
    assert loaded(full).settings == Settings(lanes={"a": LaneSettings(name="a", model="smollm2-135m")})


def test_the_examples_of_the_contract_load() -> None:
    text = """\
        api_keys: ["${env:FRESHLANE_KEY}"]
        lanes:
          qwen:
            preset: omlx
            command: [omlx, serve]
            served_model: Qwen3.8-Flash
            serves: {coder: Qwen3.8-27B}
            headers: {Authorization: "Bearer ${env:OMLX_KEY}"}
            env: {HF_HOME: /models}
            cwd: /
            idle_unload: 30m
            hold: {comments_after: off}
            memory: {limit: 24GB, timeout: 60s}
            canary: {idle_for: 0s, host_check: off}
            speculation: {method: off}
            recycle: {mode: off, min_uptime: 0s, wait_idle: 0s, window: "01:00-06:00 Europe/Berlin",
                      after: {generated_tokens: 280k, requests: 5000, uptime: 7d}}
          other:
            attach: http://127.0.0.1:8000
            restart_command: [brew, services, restart, omlx]
            watch_files: [settings.json]
        """
    settings = loaded(text, {"FRESHLANE_KEY": "k1", "OMLX_KEY": "k2"}).settings
    qwen, other = settings.lanes["qwen"], settings.lanes["other"]
    assert settings.keys_of_clients() == settings.keys_of_admins() == ("k1",)
    assert qwen.sent_headers() == {"Authorization": "Bearer k2"}
    assert qwen.model_for("coder") == "Qwen3.8-27B"
    assert qwen.model_for("qwen") == "Qwen3.8-Flash"
    assert qwen.hold.comments_after is None
    assert qwen.recycle.after.generated_tokens == 280_000
    assert "coder" in qwen.names
    assert other.is_attached
    assert not other.is_ours
    assert other.watch_files == (FOLDER / "settings.json",)


def test_defaults_and_lanes_merge_key_by_key() -> None:
    settings = loaded("""\
        defaults: {canary: {every: 1m, budget: 3%}, env: {A: a, B: b}, kind: completions}
        lanes:
          a: {model: m, canary: {every: 2m}, env: {B: c}}
          b: {model: m, kind: chat}
        """).settings
    a, b = settings.lanes["a"], settings.lanes["b"]
    assert (a.canary.every, a.canary.budget, a.env, a.kind) == (120, 0.03, {"A": "a", "B": "c"}, "completions")
    assert (b.canary.every, b.env, b.kind) == (60, {"A": "a", "B": "b"}, "chat")


def test_values_come_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    text = 'api_keys: ["${file:key}"]\nlanes: {a: {model: "${env:M:-fallback}", max_queue: "${env:Q}"}}\n'
    settings = loaded(text, {"Q": "2k", "M": ""}, tmp_path).settings
    assert settings.keys_of_clients() == ("from-a-file",)
    assert settings.lanes["a"].model == "fallback"
    assert settings.lanes["a"].max_queue == 2000


def test_what_comes_from_outside_is_not_filled_in_again() -> None:
    assert loaded('lanes: {a: {model: "${env:M}"}}', {"M": "${env:N}"}).settings.lanes["a"].model == "${env:N}"


def test_a_shell_variable_in_a_command_is_left_alone() -> None:
    lane = lane_of('command: [sh, -c, "echo ${HOME} $PATH {port}"]')
    assert lane.command == ("sh", "-c", "echo ${HOME} $PATH {port}")


def test_json_and_doubled_braces_in_a_command_are_no_placeholders() -> None:
    lane = lane_of("""command: [serve, '{"enable_thinking":false}', "{{name}}", "{port}"]""")
    assert lane.command is not None
    assert lane.command[1] == '{"enable_thinking":false}'


def test_a_port_in_the_environment_is_enough() -> None:
    assert lane_of('command: [serve], env: {PORT: "{port}"}').port is None


def test_paths_count_from_the_files_folder() -> None:
    lane = lane_of("model: ./models/x, cwd: work, speculation: {method: draft, draft: d}")
    assert lane.model == str(FOLDER / "models/x")
    assert lane.cwd == FOLDER / "work"
    assert lane.speculation.draft == FOLDER / "d"


def test_a_hub_id_is_no_path() -> None:
    assert lane_of("model: mlx-community/Qwen3-8B-4bit").model == "mlx-community/Qwen3-8B-4bit"


def test_quiet_hours_span_midnight_in_their_own_zone() -> None:
    hours = lane_of('model: m, recycle: {window: "23:00-06:00 Europe/Berlin"}').recycle.quiet_hours
    assert hours is not None
    assert hours.holds(datetime(2026, 7, 1, 21, 30, tzinfo=UTC))
    assert hours.holds(datetime(2026, 7, 2, 3, 59, tzinfo=UTC))
    assert not hours.holds(datetime(2026, 7, 2, 4, 0, tzinfo=UTC))
    assert not hours.holds(datetime(2026, 7, 1, 20, 59, tzinfo=UTC))


def test_keys_without_effect_are_warned_of() -> None:
    found = loaded('lanes:\n  a:\n    command: [s, "{port}"]\n    prefix: {disk: 1GB}\n')
    assert [(warning.line, warning.key) for warning in found.warnings] == [(4, "lanes.a.prefix")]


def test_a_port_flag_for_omlx_is_warned_of() -> None:
    found = loaded('lanes:\n  a:\n    preset: omlx\n    command: [omlx, serve, --port, "{port}"]\n')
    assert [warning.key for warning in found.warnings] == ["lanes.a.command"]


def test_an_attached_lane_takes_from_defaults_only_what_concerns_it() -> None:
    lane = loaded("""\
        defaults: {env: {A: a}, start: on_demand, replace: overlap, kind: completions}
        lanes: {a: {attach: "http://h:8000"}}
        """).settings.lanes["a"]
    assert (lane.env, lane.start, lane.replace, lane.kind) == ({}, "eager", "auto", "completions")


@pytest.mark.parametrize(
    ("body", "key"),
    [("canary: {timeout: 4s}", "canary.timeout"), ("hold: {timeout: 1m}", "hold.timeout")],
)
def test_waits_that_defeat_each_other_are_warned_of(body: str, key: str) -> None:
    found = loaded(f"lanes:\n  a:\n    model: m\n    {body}\n")
    assert [(warning.line, warning.key) for warning in found.warnings] == [(4, f"lanes.a.{key}")]


def test_a_missing_file_is_a_config_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope\.yaml: cannot be read: No such file"):
        load(tmp_path / "nope.yaml")


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    assert loaded("\ufefflanes:\r\n  a: {model: m}\r\n").settings.lanes["a"].model == "m"


def test_only_what_the_worker_was_started_with_changes_its_key() -> None:
    key = lane_of("model: m").worker_key()
    for body in ("degraded: {below: 0.8}", "aliases: [x]", "canary: {every: 1m}", "stop_signal: INT", "kind: chat"):
        assert lane_of(f"model: m, {body}").worker_key() == key
    for body in ("env: {A: b}", "port: 9", "speculation: {method: off}", "prefix: {disk: 1GB}", "cwd: /"):
        assert lane_of(f"model: m, {body}").worker_key() != key
    assert lane_of("model: n").worker_key() != key


def test_a_changed_threshold_keeps_the_fingerprint_and_a_changed_command_does_not() -> None:
    parts = lane_of('command: [s, "{port}"]').fingerprint_parts()
    assert lane_of('command: [s, "{port}"], degraded: {below: 0.8}').fingerprint_parts() == parts
    assert lane_of('command: [s, -x, "{port}"]').fingerprint_parts() != parts
