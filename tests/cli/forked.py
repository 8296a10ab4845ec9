"""Commands in processes forked off one that has imported everything: real processes, without the seconds of imports.

That the command also starts from nothing is tested by those who use ``start_command``.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from supervisor.cli.app import main

PRELOADED = ["__main__", "supervisor.cli.commands.status", "supervisor.cli.commands.check", "tests.cli.forked"]
DEADLINE_S = 30.0

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(PRELOADED)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


async def run_command(arguments: tuple[str, ...], environment: dict[str, str], folder: Path) -> Ended:
    """Run freshlane with these, and wait for its end."""
    out, err = folder / ".out", folder / ".err"
    process = _processes.Process(target=_be_freshlane, args=(arguments, environment, folder, out, err))
    process.start()
    await asyncio.to_thread(process.join, DEADLINE_S)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    process.close()
    assert code is not None, "past its deadline"
    assert code >= 0, f"ended by signal {-code}"
    return Ended(code, out.read_text(), err.read_text())


def _be_freshlane(arguments: tuple[str, ...], environment: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.argv = ["freshlane", *arguments]
    main()
