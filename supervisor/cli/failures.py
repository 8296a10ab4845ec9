"""How a verb's failure reaches a person: its text in red on stderr, and an exit code."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from rich.text import Text

from supervisor.cli.exits import Exit
from supervisor.cli.terminal import err
from supervisor.errors import FreshlaneError

_tracebacks = [False]


def show_tracebacks(is_wanted: bool) -> None:
    """Whether an unexpected error is shown whole."""
    _tracebacks[0] = is_wanted


def told(verb: Callable[[], object]) -> int:
    """Run ``verb``; tell a person of what went wrong and return the exit code."""
    try:
        _bear_any_encoding()
        return _exit_code_of(verb)
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        complain(str(error) or type(error).__name__)
    except FreshlaneError as error:
        complain(str(error))
        return int(getattr(error, "exit_code", Exit.FAILED))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost boundary: nothing may end in a traceback
        _complain_of_a_bug(error)
    return Exit.FAILED


def _exit_code_of(verb: Callable[[], object]) -> int:
    code: object = None
    try:
        verb()
    except SystemExit as leaving:
        code = leaving.code
    sys.stdout.flush()  # here, so that a full disk or a reader that left is told of as any other failure
    if code is None:
        return Exit.DONE
    return code if isinstance(code, int) else Exit.FAILED


def _bear_any_encoding() -> None:
    """Where a terminal or pipe cannot take an arrow, it gets a question mark."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _discard_output() -> None:
    """What could not be written would be tried again at exit, and complained about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Print an error: its first line in red, the remedy under it as it is."""
    first, *rest = text.splitlines() or [""]
    err().print(Text(first, style="bad"), soft_wrap=True)
    for line in rest:
        err().print(Text(line), soft_wrap=True)


def _complain_of_a_bug(error: Exception) -> None:
    details = "".join(traceback.format_exception(error))
    if _tracebacks[0]:
        err().print(Text(details), soft_wrap=True)
        return
    path = _keep(details)
    where = f"details are in {path}" if path else "details: freshlane --debug ..."
    what = " ".join(f"{type(error).__name__}: {error}".split())
    complain(f"freshlane has a bug: {what}; {where}")


def _keep(details: str) -> Path | None:
    with suppress(OSError), NamedTemporaryFile("w", prefix="freshlane-", suffix=".txt", delete=False) as file:
        file.write(details)
        return Path(file.name)
    return None
