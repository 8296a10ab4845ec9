"""NO_COLOR: no escapes at all, neither colours nor bold, on a terminal and in a pipe."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run, at_url
from tests.cli.screen import Screen
from tests.cli.stand_in import StandIn

DEADLINE_S = 60.0
VERBS = (("status",), ("log",), ("--help",))


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen(80, 24)
    yield screen
    screen.close()


async def shown(screen: Screen, folder: Path, verb: tuple[str, ...], env: dict[str, str]) -> str:
    """What a verb writes on a terminal of 80 columns, as it comes."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "supervisor", *verb),
        env={**env, "TERM": "xterm-256color"},
        cwd=folder,
        stdin=screen.slave,
        stdout=screen.slave,
        stderr=screen.slave,
    )
    await asyncio.wait_for(process.wait(), DEADLINE_S)
    return screen.raw()


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
async def test_on_a_terminal_nothing_is_painted(
    verb: tuple[str, ...], stand_in: StandIn, environment: dict[str, str], tmp_path: Path, screen: Screen
) -> None:
    written = await shown(screen, tmp_path, verb, {**environment, **at_url(stand_in.url), "NO_COLOR": "1"})
    assert written.strip()
    assert "\x1b" not in written


async def test_without_it_a_terminal_has_colours(
    stand_in: StandIn, environment: dict[str, str], tmp_path: Path, screen: Screen
) -> None:
    assert "\x1b[32m" in await shown(screen, tmp_path, ("status",), {**environment, **at_url(stand_in.url)})


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
async def test_in_a_pipe_nothing_is_painted_even_where_colours_are_forced(
    verb: tuple[str, ...], stand_in: StandIn, freshlane: Run
) -> None:
    ended = await freshlane(*verb, url=stand_in.url, env={"NO_COLOR": "1", "FORCE_COLOR": "1"})
    assert (ended.out + ended.err).strip()
    assert "\x1b" not in ended.out + ended.err
