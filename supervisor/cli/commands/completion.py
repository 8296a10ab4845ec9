"""``freshlane completion``"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # documented, but not in its __all__

from supervisor.cli.completing import VARIABLE
from supervisor.cli.exits import UsageError
from supervisor.cli.terminal import say


class Shell(StrEnum):
    """Shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell | None, typer.Argument(help="Default: by $SHELL.", show_default=False)] = None,
) -> None:
    """Print a completion script: `eval "$(freshlane completion)"`."""
    name = shell.value if shell else Path(os.environ.get("SHELL", "")).name
    if name not in list(Shell):
        raise UsageError(f"no completion for the shell {name or '?'}; name one of {', '.join(Shell)}")
    say(get_completion_script(prog_name="freshlane", complete_var=VARIABLE, shell=name))
