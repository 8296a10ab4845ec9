"""How a verb's failure reaches a person: its text in red on stderr, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from rich.text import Text

from supervisor.cli.exits import CommandError, Exit
from supervisor.cli.terminal import err
from supervisor.errors import FreshlaneError

_tracebacks = [False]


def show_tracebacks(is_wanted: bool) -> None:
    """Whether an unexpected error is shown whole."""
    _tracebacks[0] = is_wanted


def told(verb: Callable[[], object]) -> int:
    """Run ``verb``; tell a person of what went wrong and return the exit code."""
    try:
        verb()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else Exit.DONE if leaving.code is None else Exit.FAILED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has left (`| head`). Keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.FAILED
    except FreshlaneError as error:
        complain(str(error))
        return error.exit_code if isinstance(error, CommandError) else getattr(error, "exit_code", Exit.FAILED)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: nothing may end in a traceback
        _complain_of_a_bug(error)
        return Exit.FAILED
    return Exit.DONE


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
