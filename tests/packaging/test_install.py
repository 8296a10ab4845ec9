"""The built wheel, installed as the README says, and tried on a server that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FakeWorkerFactory

REPOSITORY = Path(__file__).resolve().parents[2]
LARGEST_WHEEL_BYTES = 20_000_000
PATIENCE_S = 500

pytestmark = [pytest.mark.outside, pytest.mark.timeout(PATIENCE_S + 60)]


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; fails with what it complains of."""
    ended = subprocess.run(
        command, env=env, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "uv", "build", "--wheel", "--out-dir", folder)
    [built] = folder.glob("*.whl")
    return built


def test_the_wheel_is_small_enough_to_be_tried_for_one_probe(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST_WHEEL_BYTES


@pytest.mark.parametrize(
    ("installer", "folders"),
    [
        (("uv", "tool", "install"), ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR")),
        (("pipx", "install"), ("PIPX_HOME", "PIPX_BIN_DIR")),
    ],
    ids=["uv tool install", "pipx install"],
)
async def test_it_is_installed_says_its_version_and_measures_a_server(
    wheel: Path, tmp_path: Path, fake_worker: FakeWorkerFactory, installer: tuple[str, ...], folders: tuple[str, str]
) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    env = {**kept, folders[0]: str(tmp_path / "tools"), folders[1]: str(tmp_path / "bin"), "HOME": str(tmp_path)}
    run(sys.executable, "-m", *installer, wheel, env=env)
    freshlane = tmp_path / "bin" / "freshlane"
    assert run(freshlane, "version", env=env).startswith("freshlane 0.")
    worker = await fake_worker(tok_s=400)
    told = run(freshlane, "probe", "--url", worker.url, env=env)
    assert "tok/s (" in told
    assert "restart the server, run this again" in told
