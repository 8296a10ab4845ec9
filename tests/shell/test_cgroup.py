"""The memory that a container or a unit leaves us, by files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from supervisor.config import lane_terms
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.shell.lane.runner import Runner
from supervisor.shell.machine.cgroup import Cgroup
from supervisor.shell.machine.host import Host
from tests.config.loading import loaded
from tests.fakes import fake_command
from tests.shell.lane_surroundings import surroundings

GB = 1_000_000_000
NONE_IN_V1 = "9223372036854771712"

DOCKER_V2 = "0::/\n"
UNIT_V2 = "0::/system.slice/freshlane.service\n"
DOCKER_V1 = """12:hugetlb:/docker/5ab0
9:memory:/docker/5ab0
4:cpu,cpuacct:/docker/5ab0
1:name=systemd:/docker/5ab0
0::/system.slice/containerd.service
"""
UNIT_V1 = "5:memory:/system.slice/freshlane.service\n0::/system.slice/freshlane.service\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text + "\n")


def group_v2(folder: Path, limit: str, used: int, page_cache: int = 0, high: str = "max") -> None:
    stat = f"anon {used - page_cache}\nfile {page_cache}\nslab 0\ninactive_file {page_cache}\nactive_file 0"
    write(folder, memory__max=limit, memory__high=high, memory__current=str(used), memory__stat=stat)


def group_v1(folder: Path, limit: str, used: int, page_cache: int = 0) -> None:
    stat = f"cache 4096\nrss 0\ninactive_file 4096\ntotal_cache {page_cache}\ntotal_inactive_file {page_cache}"
    write(folder, memory__limit_in_bytes=limit, memory__usage_in_bytes=str(used), memory__stat=stat)


def cgroup(root: Path, membership: str) -> Cgroup:
    root.mkdir(exist_ok=True)
    (root / "self").write_text(membership)
    return Cgroup(root, root / "self")


def test_without_cgroups_there_is_no_limit(tmp_path: Path) -> None:
    ours = Cgroup(tmp_path, tmp_path / "self")
    assert (ours.limit_bytes(), ours.available_bytes()) == (None, None)


def test_the_smallest_limit_on_the_way_up_binds_and_the_page_cache_gives_way(tmp_path: Path) -> None:
    group_v2(tmp_path / "system.slice", "8000", 6000, 1000)
    group_v2(tmp_path / "system.slice" / "freshlane.service", "9000", 1000)
    ours = cgroup(tmp_path, UNIT_V2)
    assert (ours.limit_bytes(), ours.available_bytes()) == (8000, 3000)


def test_a_units_memory_high_binds_too(tmp_path: Path) -> None:
    group_v2(tmp_path / "system.slice" / "freshlane.service", "9000", 1000, high="7000")
    ours = cgroup(tmp_path, UNIT_V2)
    assert (ours.limit_bytes(), ours.available_bytes()) == (7000, 6000)


@pytest.mark.parametrize("membership", [DOCKER_V2, "0::/docker/5ab0\n"])
def test_a_container_of_version_2_has_its_limit_at_the_top(tmp_path: Path, membership: str) -> None:
    group_v2(tmp_path, "8000", 5000, 2000)
    ours = cgroup(tmp_path, membership)
    assert (ours.limit_bytes(), ours.available_bytes()) == (8000, 5000)


def test_a_container_of_version_1_has_its_limit_at_the_top_of_the_memory_controller(tmp_path: Path) -> None:
    group_v1(tmp_path / "memory", "8000", 5000, 2000)
    ours = cgroup(tmp_path, DOCKER_V1)
    assert (ours.limit_bytes(), ours.available_bytes()) == (8000, 5000)


def test_a_unit_of_version_1_has_the_limits_of_those_above_it(tmp_path: Path) -> None:
    group_v1(tmp_path / "memory", NONE_IN_V1, 10**12)
    group_v1(tmp_path / "memory" / "system.slice", "8000", 9000, 500)
    group_v1(tmp_path / "memory" / "system.slice" / "freshlane.service", NONE_IN_V1, 1000)
    ours = cgroup(tmp_path, UNIT_V1)
    assert (ours.limit_bytes(), ours.available_bytes()) == (8000, 0)


def test_the_largest_number_of_pages_is_no_limit(tmp_path: Path) -> None:
    group_v1(tmp_path / "memory", NONE_IN_V1, 1000)
    ours = cgroup(tmp_path, DOCKER_V1)
    assert (ours.limit_bytes(), ours.available_bytes()) == (None, None)


@pytest.mark.parametrize("rubbish", ["", "no colons\n", "1:memory\n"])
def test_a_membership_that_cannot_be_read_is_no_limit(tmp_path: Path, rubbish: str) -> None:
    assert cgroup(tmp_path, rubbish).limit_bytes() is None


@pytest.mark.parametrize(("group", "folder"), [(group_v2, "."), (group_v1, "memory")])
def test_the_host_has_no_more_than_its_container(tmp_path: Path, group: object, folder: str) -> None:
    assert callable(group)
    group(tmp_path / folder, str(GB), GB // 2)
    host = Host(cgroup(tmp_path, DOCKER_V2 if folder == "." else DOCKER_V1))
    assert host.memory_total_bytes() == GB
    assert host.memory_available_bytes() == min(GB - GB // 2, psutil.virtual_memory().available)


@pytest.mark.parametrize(("group", "folder"), [(group_v2, "."), (group_v1, "memory")])
async def test_a_lane_waits_until_its_containers_memory_is_back(tmp_path: Path, group: object, folder: str) -> None:
    assert callable(group)
    root = tmp_path / "cgroup"
    group(root / folder, str(GB), GB)
    host = Host(cgroup(root, DOCKER_V2 if folder == "." else DOCKER_V1))
    text = f"lanes: {{chat: {{command: {fake_command()}, canary: {{max_tokens: 12}}, memory: {{timeout: 1s}}}}}}"
    settings = loaded(text, folder=tmp_path).settings
    lane = settings.lanes["chat"]
    async with surroundings(tmp_path, settings, host) as around:
        runner = Runner(lane, lane_terms(settings, lane, memory_total_bytes=GB, is_macos=False), around)
        await runner.open()
        runner.lane.body.workers.peak_memory_bytes = GB // 4
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.BLOCKED or None, 30)
        assert runner.lane.body.reason == "needs 0.3 GB of memory and 0.0 GB are available"
        group(root / folder, str(GB), GB, page_cache=GB // 2)
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 60)
        runner.tell(ev.StopAsked(around.clock.now(), is_now=True))
        await runner.until(lambda: runner.is_without_worker or None, 30)
        await runner.close()
