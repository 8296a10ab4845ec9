"""What the worker writes down for the tests: requests as they came, digests of answers, its age."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from tests.fake_worker.generation import Tape
from tests.fake_worker.knobs import Knobs
from tests.fake_worker.wire import Request


def note_request(knobs: Knobs, request: Request) -> None:
    if knobs.requests_file is None:
        return
    line = {
        "pid": os.getpid(),
        "method": request.method,
        "path": request.path,
        "headers": dict(request.headers),
        "body": request.body.decode("utf-8", "replace"),
    }
    append_line(knobs.requests_file, line)


def note_answer(knobs: Knobs, request: Request, status: int, tape: Tape, began: float) -> None:
    """`sha256` and `bytes` are of the exact body sent, less its framing; `status` 0: no answer was begun.

    `began` and `ended` are monotonic seconds.
    """
    if knobs.digest_file is None:
        return
    line = {
        "request_id": request.headers.get("x-request-id"),
        "sha256": tape.digest.hexdigest(),
        "bytes": tape.bytes,
        "tokens": tape.tokens,
        "complete": tape.complete,
        "status": status,
        "path": request.path,
        "pid": os.getpid(),
        "began": began,
        "ended": time.monotonic(),
        "generation": os.environ.get("FRESHLANE_GENERATION"),
    }
    append_line(knobs.digest_file, line)


def note_age(knobs: Knobs, served: int, started: float, nominal_tok_s: float) -> None:
    if knobs.age_file is None:
        return
    age = {
        "pid": os.getpid(),
        "requests": served,
        "uptime_s": round(time.monotonic() - started, 3),
        "nominal_tok_s": round(nominal_tok_s, 3),
    }
    beside = knobs.age_file.with_name(f"{knobs.age_file.name}.{os.getpid()}")
    beside.write_text(json.dumps(age))
    beside.rename(knobs.age_file)


def append_line(path: Path, line: dict[str, Any]) -> None:
    """One write in append mode, so that workers may share the file."""
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")
