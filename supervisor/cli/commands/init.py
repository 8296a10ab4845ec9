"""``freshlane init``"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.exits import CommandError, UsageError
from supervisor.cli.finding.held import held_models
from supervisor.cli.finding.lanes_text import lanes_text
from supervisor.cli.finding.models import find_models
from supervisor.cli.finding.plan import MOST_LANES, ideas
from supervisor.cli.finding.servers import installed_servers, running_servers
from supervisor.cli.finding.usable import usable
from supervisor.cli.terminal import print_bytes, say, warn
from supervisor.config.load import load_content
from supervisor.core.words import plural

FileOption = Annotated[
    Path,
    typer.Option("--config", "-c", metavar="FILE", envvar="FRESHLANE_CONFIG", help="The file to write."),
]
PrintOption = Annotated[bool, typer.Option("--print", help="Print it, and write nothing.", show_default=False)]


def init(*, config: FileOption = Path("lanes.yaml"), is_printed: PrintOption = False) -> None:
    """Look for model servers and models on this machine, and write a commented lanes.yaml.

    A file that is there already is never touched.
    """
    place = config.expanduser()
    if not is_printed and os.path.lexists(place):
        raise UsageError(f"{place} is there already and stays as it is; name another file with -c, or use --print")
    servers, running = installed_servers(), running_servers()
    models = find_models(Path.home(), os.environ)
    found = usable(ideas(models, servers, running, is_macos=sys.platform == "darwin"))
    text = lanes_text(found)
    if is_printed:
        print_bytes(text.encode())
        return
    _write(place, text)
    held = list(held_models(load_content(text.encode(), str(place), Path("/"), os.environ).settings.lanes.values()))
    say(
        f"found {plural(len(servers), 'server')} ({', '.join(servers) or 'none on PATH'}), "
        f"{len(running)} running, {plural(len(models), 'model')}",
        f"wrote {place}: {plural(min(len(found), MOST_LANES) or 1, 'lane')}; read it, then: freshlane run -c {place}",
    )
    for lane, holding in held:
        warn(f"lane {lane.name}: {holding}; {holding.remedy}")
    if not found:
        warn("no server or model was found, so the lane is the small model that freshlane brings along")


def _write(place: Path, text: str) -> None:
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{place} has just been written by somebody else; it stays as it is") from None
    except OSError as error:
        raise CommandError(f"{place} cannot be written: {error.strerror}; name another place with -c") from None
