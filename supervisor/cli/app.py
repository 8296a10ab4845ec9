"""The command line: which verbs there are and where each lives. A verb's module is loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, NamedTuple

import typer
from typer.core import TyperGroup

from supervisor.cli.completing import get_ready
from supervisor.cli.failures import show_tracebacks, told
from supervisor.cli.terminal import is_plain

COMMANDS = "supervisor.cli.commands"


class Verb(NamedTuple):
    """A verb's module in ``supervisor.cli.commands``, the function in it, and the help's panel it stands in."""

    module: str
    function: str
    panel: str


SEE, ACT, SET_UP = "See", "Act", "Set up"

VERBS = {
    "run": Verb("run", "run", SET_UP),
    "demo": Verb("demo", "demo", SET_UP),
    "init": Verb("init", "init", SET_UP),
    "check": Verb("check", "check", SET_UP),
    "schema": Verb("schema", "schema", SET_UP),
    "service": Verb("service", "service", SET_UP),
    "doctor": Verb("doctor", "doctor", SET_UP),
    "completion": Verb("completion", "completion", SET_UP),
    "version": Verb("version", "version", SET_UP),
    "status": Verb("status", "status", SEE),
    "top": Verb("top", "top", SEE),
    "log": Verb("log", "log", SEE),
    "logs": Verb("logs", "logs", SEE),
    "baseline": Verb("baseline", "baseline", SEE),
    "replay": Verb("replay", "replay_file", SEE),
    "probe": Verb("probe", "probe", ACT),
    "recycle": Verb("recycle", "recycle", ACT),
    "drain": Verb("wishes", "drain", ACT),
    "resume": Verb("wishes", "resume", ACT),
    "start": Verb("wishes", "start", ACT),
    "stop": Verb("wishes", "stop", ACT),
    "reload": Verb("reload", "reload", ACT),
}
"""In the order of the help. A function, or a typer app where a verb has verbs of its own."""

PRESENT = [name for name, verb in VERBS.items() if find_spec(f"{COMMANDS}.{verb.module}") is not None]


class LazyVerbs(TyperGroup):
    """Loads a verb's module when the verb is used, so that a quick verb does not pay for the others."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002
        """All verbs, as the help shows them."""
        return PRESENT

    def get_command(self, ctx: typer.Context, cmd_name: str):  # type: ignore[no-untyped-def,override]  # noqa: ARG002
        """The verb, loaded now; None if there is no such verb."""
        if cmd_name not in PRESENT:
            for name in PRESENT:  # so that a near miss can be named
                self._load(name)
            return None
        return self._load(cmd_name)

    def _load(self, name: str):  # type: ignore[no-untyped-def]
        if name not in self.commands:
            self.commands[name] = typer.main.get_command(_typer_app(name, VERBS[name]))
        return self.commands[name]


def _typer_app(name: str, verb: Verb) -> typer.Typer:
    target: Callable[..., None] | typer.Typer = getattr(import_module(f"{COMMANDS}.{verb.module}"), verb.function)
    if isinstance(target, typer.Typer):
        target.info.rich_help_panel = verb.panel
        return target
    own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    own.command(name, rich_help_panel=verb.panel)(target)
    return own


app = typer.Typer(
    name="freshlane",
    cls=LazyVerbs,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def freshlane(
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar="FRESHLANE_DEBUG", show_default=False, help="Show tracebacks of unexpected errors."
        ),
    ] = False,
) -> None:
    """Keeps local LLM servers at the speed of a fresh process.

    One daemon (`freshlane run`) owns the workers; the other verbs talk to it.
    """
    show_tracebacks(debug)


def main() -> None:
    """The entry point of ``freshlane``: runs the verb and ends with its exit code, never with a traceback."""
    get_ready()
    if is_plain():
        from typer import rich_utils  # noqa: PLC0415 - slow to load, and rarely needed

        rich_utils.COLOR_SYSTEM = None
    sys.exit(told(lambda: app(prog_name="freshlane")))
