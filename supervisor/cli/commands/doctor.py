"""``freshlane doctor``"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from supervisor.cli.doctor.configuration import read_configuration
from supervisor.cli.doctor.finding import Finding
from supervisor.cli.doctor.limits import limits
from supervisor.cli.doctor.machine import Machine, machine, read_machine
from supervisor.cli.doctor.models import models
from supervisor.cli.doctor.places import places
from supervisor.cli.doctor.ports import ports
from supervisor.cli.doctor.report import report as report_of
from supervisor.cli.doctor.service import service, service_files
from supervisor.cli.exits import CommandError, UsageError
from supervisor.cli.options import ConfigOption
from supervisor.cli.render.layout import hang, painted
from supervisor.cli.target import find_config
from supervisor.cli.terminal import out, print_json, say, width
from supervisor.config import Loaded
from supervisor.core.words import plural

SIGNS = {"good": "ok", "warn": "look", "bad": "bad"}
INDENT = 6

ReportOption = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", show_default=False, help="Also write one anonymised file for an issue."),
]
FindingsOption = Annotated[bool, typer.Option("--json", help="Print the findings as JSON.", show_default=False)]


def doctor(*, config: ConfigOption = None, report: ReportOption = None, is_json: FindingsOption = False) -> None:
    """Look for what could be in the way: ports, paths, limits, models, memory, power and heat, the service.

    Changes nothing. Exits with 1 if something will not work.
    """
    path = find_config(config)
    loaded, findings = read_configuration(path)
    now = read_machine()
    findings += _look(loaded, path, now)
    if is_json:
        print_json({"findings": [_as_json(finding) for finding in findings]})
    else:
        for finding in findings:
            _show(finding)
    if report is not None:
        _write(report, findings, now, loaded)
    ills = sum(finding.level == "bad" for finding in findings)
    if ills:
        raise CommandError(f"{plural(ills, 'thing')} will not work; see above")


def _look(loaded: Loaded | None, path: Path | None, now: Machine) -> Iterator[Finding]:
    settings = loaded.settings if loaded else None
    if settings is not None:
        yield from ports(settings)
        yield from places(settings)
        yield from models(settings, Path.home(), os.environ)
    yield from limits()
    yield from machine(now, settings)
    yield from service(service_files(Path.home()), path, settings)


def _as_json(finding: Finding) -> dict[str, str]:
    return {"level": finding.level, "subject": finding.subject, "text": finding.text, "remedy": finding.remedy}


def _show(finding: Finding) -> None:
    line = painted(f"{SIGNS[finding.level]:<{INDENT}}", finding.level).append(f"{finding.subject}: ", style="name")
    say(*hang(line.append(finding.text), width(), out(), rest=INDENT))
    if finding.remedy:
        say(*hang(Text(f"→ {finding.remedy}", style="quiet"), width(), out(), first=INDENT, rest=INDENT + 2))


def _write(place: Path, findings: list[Finding], now: Machine, loaded: Loaded | None) -> None:
    text = json.dumps(report_of(findings, now, loaded.settings if loaded else None), indent=2, ensure_ascii=False)
    try:
        with place.expanduser().open("x", encoding="utf-8") as file:
            file.write(text + "\n")
    except FileExistsError:
        raise UsageError(f"{place} is there already and stays as it is; name another file") from None
    except OSError as error:
        raise CommandError(f"{place} cannot be written: {error.strerror}; name another place") from None
    say(f"wrote {place}; read it before you post it")
