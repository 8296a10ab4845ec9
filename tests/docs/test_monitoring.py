"""The alert rules and the Grafana dashboard, held to promtool and to the metrics that there are."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from supervisor.metrics import Metrics
from tests.docs.pages import REPOSITORY
from tests.system_tools import system_tool
from tests.test_metrics import IDLE_LANE, LANE, fleet_of

DOCS = REPOSITORY / "docs"
ALERTS = DOCS / "alerts.yml"
DASHBOARD: dict[str, Any] = json.loads((DOCS / "grafana.json").read_text())
GRAFANAS_OWN = {"$__range": "6h", "$__rate_interval": "1m"}
METRIC = re.compile(r"\bfreshlane_\w+")


def promtool(*arguments: str, stdin: str | None = None) -> str:
    """What it says; fails with it where it finds something."""
    command = [system_tool("promtool", package="prometheus"), *arguments]
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def known_metrics() -> set[str]:
    page, _ = Metrics(lambda: fleet_of(LANE, IDLE_LANE)).page("application/openmetrics-text")
    families = parse_openmetrics(page.decode())  # type: ignore[no-untyped-call]
    return {sample.name for family in families for sample in family.samples}


def asked() -> Iterator[tuple[str, str]]:
    """Each query of the dashboard with the panel it stands in."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def test_metric_names_keep_to_the_conventions_of_prometheus() -> None:
    page, _ = Metrics(lambda: fleet_of(LANE, IDLE_LANE)).page()
    assert promtool("check", "metrics", stdin=page.decode()).strip() == ""


def test_the_example_of_a_configuration_and_the_rules_it_names_are_valid() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "config", str(DOCS / "prometheus.yml"))


def test_alerts_tell_what_they_should_and_nothing_of_a_healthy_lane() -> None:
    promtool("test", "rules", str(Path(__file__).with_name("alerts_test.yml")))


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_every_alert_asks_for_metrics_that_there_are_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(METRIC.findall(rule["expr"])) <= known_metrics()
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["remedy"]


def test_every_alert_stands_in_the_page() -> None:
    page = (DOCS / "monitoring.md").read_text()
    assert {rule["alert"] for rule in rules()} == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    variables = [
        variable["query"]["query"] for variable in DASHBOARD["templating"]["list"] if variable["type"] == "query"
    ]
    named = {name for text in (*variables, *(query for _, query in asked())) for name in METRIC.findall(text)}
    assert named <= known_metrics()


def test_every_query_of_the_dashboard_is_promql(tmp_path: Path) -> None:
    """Promtool reads queries as rules; what Grafana puts in by itself is put in here."""
    queries = []
    for title, query in asked():
        for name, value in GRAFANAS_OWN.items():
            query = query.replace(name, value)  # noqa: PLW2901
        queries.append({"record": f"q:{len(queries)}", "expr": query, "labels": {"panel": title}})
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": queries}]}))
    assert f"{len(queries)} rules found" in promtool("check", "rules", str(file))


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
