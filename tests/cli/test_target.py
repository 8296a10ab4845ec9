"""Which daemon is asked, and with which key."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.cli.target import url_of
from tests.cli.conftest import Run
from tests.cli.stand_in import TOKEN, StandIn


def write_config(folder: Path, listen: str, name: str = "lanes.yaml", more: str = "") -> Path:
    state = folder / "state"
    state.mkdir(exist_ok=True)
    token = state / "admin-token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    path = folder / name
    path.write_text(f"listen: {listen}\nstate_dir: {state}\nlanes:\n  smollm2:\n    model: smollm2-135m\n{more}")
    return path


async def test_lanes_yaml_names_the_daemon_and_the_folder_of_its_token(
    freshlane: Run, stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.needs_key = True
    write_config(tmp_path, stand_in.url.removeprefix("http://"))
    assert (await freshlane("status")).code == 0
    elsewhere = write_config(tmp_path, stand_in.url.removeprefix("http://"), "other.yaml")
    (tmp_path / "lanes.yaml").unlink()
    assert (await freshlane("status", "-c", str(elsewhere))).code == 0
    assert (await freshlane("status", env={"FRESHLANE_CONFIG": str(elsewhere)})).code == 0


async def test_a_lanes_yaml_with_errors_still_leads_to_the_daemon(
    freshlane: Run, stand_in: StandIn, tmp_path: Path
) -> None:
    stand_in.needs_key = True
    write_config(
        tmp_path, stand_in.url.removeprefix("http://"), more="    modle: x\n    headers: {a: '${env:UNSET}'}\n"
    )
    ended = await freshlane("status")
    assert (ended.code, ended.err) == (0, "")


async def test_without_a_key_the_command_says_where_it_looked(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.needs_key = True
    ended = await freshlane("status", "--url", stand_in.url)
    assert ended.code == 1
    assert "missing or wrong key" in ended.err
    assert "FRESHLANE_API_KEY" in ended.err
    assert "admin-token" in ended.err
    assert (await freshlane("status", url=stand_in.url, env={"FRESHLANE_API_KEY": TOKEN})).code == 0


async def test_a_config_that_is_not_there_is_bad_usage(freshlane: Run) -> None:
    ended = await freshlane("status", "-c", "nowhere.yaml")
    assert ended.code == 2
    assert ended.err.startswith("nowhere.yaml: no such file")


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        ("127.0.0.1:7411", "http://127.0.0.1:7411"),
        ("0.0.0.0:80", "http://127.0.0.1:80"),
        ("[::1]:7411", "http://[::1]:7411"),
        ("[::]:7411", "http://[::1]:7411"),
    ],
)
def test_a_daemon_that_listens_everywhere_is_asked_on_loopback(listen: str, url: str) -> None:
    assert url_of(listen) == url
