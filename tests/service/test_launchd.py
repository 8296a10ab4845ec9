"""What launchctl is asked for, and in which order; its answers are those of a real one, written down."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from supervisor.cli.service.launchd import Launchd
from supervisor.cli.service.tools import ServiceManagerError
from tests.service.fake_launchctl import BUSY, DOMAIN, DONE, ENDED, NO_DOMAIN, NOT_FOUND, RUNNING, FakeLaunchctl

GUI, USER = "gui/501/dev.freshlane.daemon", "user/501/dev.freshlane.daemon"
PLIST = b"<?xml version='1.0'?><plist/>"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLaunchctl:
    launchctl = FakeLaunchctl(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{launchctl.folder}{os.pathsep}{os.environ['PATH']}")
    return launchctl


@pytest.fixture
def launchd(tmp_path: Path) -> Launchd:
    return Launchd(is_system=False, uid=501, home=tmp_path, pauses_s=(0.0, 0.0, 0.0))


def test_install_writes_a_private_plist_and_retries_a_bootstrap_that_is_busy(
    fake: FakeLaunchctl, launchd: Launchd
) -> None:
    bootstrap = f"bootstrap gui/501 {launchd.path}"
    fake.answers(
        **{
            f"print {GUI}": [NOT_FOUND],
            f"print {USER}": [NOT_FOUND],
            "print gui/501": [DOMAIN],
            bootstrap: [BUSY, BUSY, DONE],
        }
    )
    launchd.install(PLIST, 1.0)
    assert launchd.path.read_bytes() == PLIST
    assert stat.S_IMODE(launchd.path.stat().st_mode) == 0o600
    assert fake.calls()[-5:] == ["print gui/501", f"enable {GUI}", bootstrap, bootstrap, bootstrap]


def test_an_earlier_one_is_told_to_stop_and_waited_for_before_it_is_taken_out(
    fake: FakeLaunchctl, launchd: Launchd
) -> None:
    fake.answers(**{f"print {GUI}": [RUNNING, RUNNING, ENDED, NOT_FOUND], f"print {USER}": [NOT_FOUND]})
    launchd.install(PLIST, 5.0)
    look = f"print {GUI}"
    assert fake.calls() == [
        *(look, f"kill SIGTERM {GUI}", look, look, f"bootout {GUI}", look),
        *(f"print {USER}", "print gui/501", f"enable {GUI}", f"bootstrap gui/501 {launchd.path}"),
    ]


def test_over_ssh_where_nobody_sits_at_the_screen_the_users_domain_is_taken(
    fake: FakeLaunchctl, launchd: Launchd
) -> None:
    fake.answers(**{f"print {GUI}": [NOT_FOUND], f"print {USER}": [NOT_FOUND], "print gui/501": [NO_DOMAIN]})
    launchd.install(PLIST, 1.0)
    assert fake.calls()[-1] == f"bootstrap user/501 {launchd.path}"


def test_a_bootstrap_that_stays_busy_ends_in_what_launchctl_said_and_what_to_look_at(
    fake: FakeLaunchctl, launchd: Launchd
) -> None:
    fake.answers(
        **{
            f"print {GUI}": [NOT_FOUND],
            f"print {USER}": [NOT_FOUND],
            f"bootstrap gui/501 {launchd.path}": [BUSY],
        }
    )
    with pytest.raises(ServiceManagerError, match=r"(?s)ended with 5: Bootstrap failed.*plutil -lint"):
        launchd.install(PLIST, 1.0)


def test_what_runs_as_it_should_is_left_alone(fake: FakeLaunchctl, launchd: Launchd) -> None:
    fake.answers(**{f"print {GUI}": [RUNNING]})
    launchd.path.parent.mkdir(parents=True)
    launchd.path.write_bytes(PLIST)
    launchd.install(PLIST, 1.0)
    assert fake.calls() == [f"print {GUI}"]


def test_uninstall_takes_it_out_and_removes_the_plist(fake: FakeLaunchctl, launchd: Launchd) -> None:
    fake.answers(
        **{
            f"print {GUI}": [RUNNING, RUNNING, ENDED, NOT_FOUND],
            f"print {USER}": [NOT_FOUND],
            f"bootout {GUI}": [(36, "Boot-out failed: 36: Operation now in progress\n")],
        }
    )
    launchd.path.parent.mkdir(parents=True)
    launchd.path.write_bytes(PLIST)
    assert launchd.uninstall(5.0)
    assert not launchd.path.exists()
    assert f"bootout {GUI}" in fake.calls()


def test_state_is_read_from_print(fake: FakeLaunchctl, launchd: Launchd) -> None:
    fake.answers(**{f"print {GUI}": [RUNNING, ENDED, NOT_FOUND], f"print {USER}": [NOT_FOUND]})
    running = launchd.state()
    assert running.is_running
    assert running.summary == "running, gui/501, pid 4711, last exit code (never exited)"
    ended = launchd.state()
    assert (ended.is_installed, ended.is_running) == (True, False)
    assert ended.summary == "not running, gui/501, last exit code 0"
    assert launchd.state().is_installed is False
