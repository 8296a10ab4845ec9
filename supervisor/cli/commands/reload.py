"""``freshlane reload``"""

from __future__ import annotations

from typing import Any

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import LaneFailedError
from supervisor.cli.options import ConfigOption, JsonOption, UrlOption
from supervisor.cli.render.layout import painted
from supervisor.cli.terminal import print_json, say, warn

STYLE_OF_DEED = {"kept": "quiet", "updated": "good", "added": "good", "recycled": "warn", "removed": "warn"}


def reload(as_json: JsonOption = False, config: ConfigOption = None, url: UrlOption = None) -> None:
    """Let the daemon read its lanes.yaml again.

    A bad file changes nothing, and exits with 2.
    """

    async def ask(daemon: Daemon) -> dict[str, Any]:
        return await daemon.post("/api/reload")

    document = talk(config, url, ask)
    if as_json:
        print_json(document)
    else:
        _tell(document)
    if document.get("errors"):
        raise LaneFailedError("\n".join(["some lanes cannot run", *map(str, document["errors"])]))


def _tell(document: dict[str, Any]) -> None:
    lanes = document.get("lanes") or {}
    longest = max((len(name) for name in lanes), default=0)
    for name, deed in lanes.items():
        say(painted(f"{name:<{longest}}  ", "name").append(str(deed), style=STYLE_OF_DEED.get(str(deed), "")))
    if document.get("needs_restart"):
        warn(f"changed only by a restart of the daemon: {', '.join(document['needs_restart'])}")
