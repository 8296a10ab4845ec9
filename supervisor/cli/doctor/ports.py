"""The daemon's own port, and those of lanes that have a fixed one or watch a server."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor.cli.doctor.finding import Finding, bad, doubtful, good
from supervisor.cli.finding.held import held_models
from supervisor.cli.finding.servers import ask_json
from supervisor.cli.target import url_of
from supervisor.settings import LaneSettings, Settings
from supervisor.shell.machine.ports import holder_of, is_taken


def ports(settings: Settings) -> Iterator[Finding]:
    """Whether the daemon can listen, or does; and whether the lanes' ports are theirs to take."""
    is_running = ask_json(f"{url_of(settings.listen)}/healthz").get("status") == "ok"
    yield _own(settings, is_running=is_running)
    for lane in settings.lanes.values():
        if lane.attach is not None:
            yield _attached(lane)
        elif lane.port is not None and not is_running:
            yield _fixed(lane, lane.port)
    for lane, holding in held_models(settings.lanes.values()):
        yield doubtful(f"lane {lane.name}", str(holding), holding.remedy)


def _own(settings: Settings, *, is_running: bool) -> Finding:
    if is_running:
        return good("port", f"a daemon runs on {settings.listen}")
    if settings.listen_port and is_taken(settings.listen_port, settings.listen_host):
        remedy = "stop it, or set `listen` in lanes.yaml to another port"
        return bad("port", f"{settings.listen} is taken by {_holder(settings.listen_port)}", remedy)
    return good("port", f"{settings.listen} is free; no daemon runs")


def _fixed(lane: LaneSettings, port: int) -> Finding:
    if is_taken(port):
        remedy = f"stop it, or write {{port}} in the command of {lane.name}, so that a free one is taken"
        return bad(f"lane {lane.name}", f"its port {port} is taken by {_holder(port)}", remedy)
    return good(f"lane {lane.name}", f"its port {port} is free")


def _attached(lane: LaneSettings) -> Finding:
    subject = f"lane {lane.name}"
    if "data" in ask_json(f"{str(lane.attach).rstrip('/')}/v1/models"):
        return good(subject, f"its server at {lane.attach} answers")
    remedy = "start that server, or mend `attach` (one that wants a key answers nothing here; then this is no fault)"
    return doubtful(subject, f"no model list from its server at {lane.attach}", remedy)


def _holder(port: int) -> str:
    holder = holder_of(port)
    return f"pid {holder[0]} ({holder[1]})" if holder else "another user's process"
