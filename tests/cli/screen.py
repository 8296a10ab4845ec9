"""A terminal of a given size, and what commands write on it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """A terminal, and what was written on it."""

    def __init__(self, columns: int, lines: int) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        os.set_blocking(self.master, False)
        self._written = b""

    def raw(self) -> str:
        """All that was written so far, as it came."""
        try:
            while part := os.read(self.master, 65536):
                self._written += part
        except OSError:
            pass
        return self._written.decode(errors="replace")

    def text(self) -> str:
        """All that was written so far, without colours and cursor movements."""
        return ESCAPES.sub("", self.raw())

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)
