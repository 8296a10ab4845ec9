"""``freshlane reload``"""

from __future__ import annotations

from typing import Any

import typer
from rich.text import Text

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import Exit
from supervisor.cli.failures import complain
from supervisor.cli.options import ConfigOption, JsonOption, UrlOption
from supervisor.cli.terminal import print_json, say, warn

STYLE_OF_DEED = {"kept": "quiet", "updated": "good", "added": "good", "recycled": "warn", "removed": "warn"}


def reload(as_json: JsonOption = False, config: ConfigOption = None, url: UrlOption = None) -> None:
    """Let the daemon read its lanes.yaml again. A bad file changes nothing, and exits with 2."""

    async def ask(daemon: Daemon) -> dict[str, Any]:
        return await daemon.post("/api/reload")

    document = talk(config, url, ask)
    errors = document.get("errors") or []
    if as_json:
        print_json(document)
    else:
        _tell(document, errors)
    if errors:
        raise typer.Exit(Exit.USAGE)


def _tell(document: dict[str, Any], errors: list[Any]) -> None:
    if errors:
        complain("\n".join(["lanes.yaml has errors; nothing was changed", *(f"  {error}" for error in errors)]))
        return
    lanes = document.get("lanes") or {}
    longest = max((len(name) for name in lanes), default=0)
    for name, deed in lanes.items():
        say(Text(f"{name:<{longest}}  ", style="name").append(str(deed), style=STYLE_OF_DEED.get(str(deed), "")))
    if document.get("needs_restart"):
        warn(f"changed only by a restart of the daemon: {', '.join(document['needs_restart'])}")
    if not lanes:
        say("done")
