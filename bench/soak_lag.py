"""How late the daemon's loop is, as seen by a process of its own: the time of a GET /healthz, twenty times a second.

    python bench/soak_lag.py PORT FILE

Writes a line for each: milliseconds of the answer, and milliseconds by which this very process woke too late. The
first is never less than the lag of the daemon's loop; the second says how much of it the machine's load is to blame for.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

EVERY_S = 0.05
PATIENCE_S = 10.0


def main() -> None:
    port, path = int(sys.argv[1]), Path(sys.argv[2])
    waiting = threading.Event()
    with path.open("w", buffering=1) as out:
        while True:
            due = time.monotonic() + EVERY_S
            waiting.wait(EVERY_S)
            late_s = time.monotonic() - due
            try:
                ask_on(port, out, late_s)
            except (OSError, http.client.HTTPException):
                return  # the daemon has ended


def ask_on(port: int, out: TextIO, late_s: float) -> None:
    """One question on a fresh connection, which the loop has to accept, read and answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        began = time.monotonic()
        connection.request("GET", "/healthz", headers={"Connection": "close"})
        connection.getresponse().read()
        out.write(f"{1000 * (time.monotonic() - began):.2f} {1000 * late_s:.2f}\n")
    finally:
        connection.close()


if __name__ == "__main__":
    main()
