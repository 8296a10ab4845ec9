"""A real engine process on a free port."""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


class EngineProcess:
    """`python -m engine` with its output followed line by line. Close it."""

    def __init__(self, model: str | Path, *options: str, port: int = 0, **environment: str) -> None:
        command = [sys.executable, "-P", "-m", "engine", "--model", str(model), "--port", str(port), *options]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._arrived: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._arrived.put(line.rstrip())

    def line(self, pattern: str, deadline_s: float = 60.0) -> re.Match[str]:
        """Wait for a line of output that matches."""
        ends = time.monotonic() + deadline_s
        while True:
            line = self._arrived.get(timeout=max(0.01, ends - time.monotonic()))
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found

    def listening(self) -> str:
        """The URL, as soon as it listens; the model may still be loading."""
        return self.line(r"listening on (http://\S+),")[1]

    def serving(self) -> str:
        """The URL, when the model is loaded."""
        url = self.listening()
        self.line("serving ")
        return url

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self, deadline_s: float = 30.0) -> int:
        code = self.process.wait(deadline_s)
        self._reader.join(5)
        while not self._arrived.empty():
            self.lines.append(self._arrived.get())
        return code

    def close(self) -> int:
        """End it as the supervisor does; returns its exit code."""
        if self.process.poll() is None:
            self.terminate()
        try:
            return self.exit_code()
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stderr
            self.process.stderr.close()
