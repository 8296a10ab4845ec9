"""How late the daemon's loop is, as seen by a process of its own: the time of a GET /healthz, twenty times a second.

    python bench/soak_lag.py PORT PID FILE

Writes a line for each: milliseconds of the answer, and how many of them went by while the daemon or this process was
ready to run and had no CPU (by the kernel's own account; 0 where it keeps none). What is left is never less than the
lag of the daemon's loop, and other work on the machine is not counted as its fault.
"""

from __future__ import annotations

import http.client
import sys
import threading
import time
from pathlib import Path

EVERY_S = 0.05
PATIENCE_S = 10.0


def main() -> None:
    port, pid, path = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    accounts = [Path(f"/proc/{pid}/schedstat"), Path("/proc/self/schedstat")]
    waiting = threading.Event()
    with path.open("w", buffering=1) as out:
        while not waiting.wait(EVERY_S):
            try:
                answer_s, waited_s = ask(port, accounts)
            except (OSError, http.client.HTTPException):
                return  # the daemon has ended
            out.write(f"{1000 * answer_s:.2f} {1000 * waited_s:.2f}\n")


def ask(port: int, accounts: list[Path]) -> tuple[float, float]:
    """Ask on a fresh connection, which the loop has to accept, read and answer: seconds, and seconds without a CPU."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        without_before = sum(map(without_cpu_s, accounts))
        began = time.monotonic()
        connection.request("GET", "/healthz", headers={"Connection": "close"})
        connection.getresponse().read()
        return time.monotonic() - began, sum(map(without_cpu_s, accounts)) - without_before
    finally:
        connection.close()


def without_cpu_s(account: Path) -> float:
    """How long a process's main thread has been ready to run without running."""
    return int(account.read_text().split()[1]) / 1e9 if account.exists() else 0.0


if __name__ == "__main__":
    main()
