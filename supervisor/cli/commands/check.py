"""``freshlane check``"""

from __future__ import annotations

from rich.text import Text

from supervisor.cli.exits import UsageError
from supervisor.cli.finding.held import held_models
from supervisor.cli.options import ConfigOption
from supervisor.cli.render.layout import Column, lay_out
from supervisor.cli.target import require_config
from supervisor.cli.terminal import say, warn, width
from supervisor.config import ConfigError, load, machine_warnings
from supervisor.core.words import plural
from supervisor.settings import LaneSettings

COLUMNS = (Column("LANE", 100), Column("MODEL", 80), Column("WORKER", 90), Column("RECYCLES", 60), Column("NAMES", 50))


def check(config: ConfigOption = None) -> None:
    """Show every error of lanes.yaml at once, or what would run.

    Exits with 2 if there are errors.
    """
    path = require_config(config)
    try:
        loaded = load(path)
    except ConfigError as error:
        raise UsageError(f"{path}: {plural(len(error.problems), 'error')}\n{error}") from None
    settings = loaded.settings
    say(f"{path}: {plural(len(settings.lanes), 'lane')}, listening on {settings.listen}, state in {settings.state_dir}")
    say(*lay_out(COLUMNS, [_row(lane) for lane in settings.lanes.values()], width()))
    for warning in (*loaded.warnings, *machine_warnings(settings)):
        warn(f"warning: {warning}")
    for lane, holding in held_models(settings.lanes.values()):
        warn(f"warning: lanes.{lane.name}.model: {holding}; {holding.remedy}")


def _row(lane: LaneSettings) -> list[Text]:
    return [
        Text(lane.name, style="name"),
        Text(lane.worker_model),
        Text(_worker(lane)),
        Text(lane.recycle.mode),
        Text(", ".join(lane.names[1:]), style="quiet"),
    ]


def _worker(lane: LaneSettings) -> str:
    if lane.is_attached:
        return f"attached to {lane.attach}"
    if lane.is_ours:
        return "freshlane's own engine"
    return " ".join(lane.command or ()) or f"preset {lane.preset}"
