"""Small real programs to run as workers, and the specs that start them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil

from supervisor.shell.worker.process import WorkerSpec

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
    "while True: time.sleep(600)"
)
PARENT_OF_A_SETSID_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
print("child", child.pid, flush=True)
time.sleep(600)
"""


def python(code: str, *words: str) -> tuple[str, ...]:
    """A command that runs `code` with as little start-up as Python has."""
    return (sys.executable, "-I", "-S", "-c", code, *words)


def spec_of(folder: Path, *argv: str, **changes: Any) -> WorkerSpec:
    """A spec for `argv` whose files lie in `folder`."""
    fields: dict[str, Any] = {
        "argv": argv,
        "env": dict(os.environ),
        "cwd": None,
        "output_path": folder / "worker.log",
        "output_max_bytes": 1_000_000,
        "output_keep": 1,
        "stop_signal": signal.SIGTERM,
        "stop_timeout_s": 5.0,
        "may_kill": True,
        "lane": "small",
        "generation": 3,
    }
    return WorkerSpec(**{**fields, **changes})


def children_called(word: str) -> list[int]:
    """Living children of this process whose command has `word` in it."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie, or gone by now
            if word in " ".join(child.cmdline()):
                found.append(child.pid)
    return found
