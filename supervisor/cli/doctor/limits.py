"""Open files: each client and each stream to a worker takes one."""

from __future__ import annotations

import resource
from collections.abc import Iterator

from supervisor.cli.doctor.finding import Finding, bad, doubtful, good

SUBJECT = "open files"
FEW, ENOUGH = 256, 1024
"""Fewer than 256: a handful of clients fills it. macOS gives a shell 256, Linux 1024."""


def limits() -> Iterator[Finding]:
    """What this shell, and a daemon started from it, may open."""
    yield judge(*resource.getrlimit(resource.RLIMIT_NOFILE))


def judge(soft: int, hard: int) -> Finding:
    """``soft`` is what counts, up to ``hard`` it can be raised; -1: no limit."""
    if soft == resource.RLIM_INFINITY or soft >= ENOUGH:
        return good(SUBJECT, "no limit" if soft == resource.RLIM_INFINITY else f"{soft} allowed")
    most = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    remedy = f"`ulimit -n {most}` before `freshlane run`; `freshlane service install` raises it by itself"
    if soft < FEW:
        return bad(SUBJECT, f"only {soft} allowed", remedy)
    return doubtful(SUBJECT, f"{soft} allowed; many clients at once need more", remedy)
