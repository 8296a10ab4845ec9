"""The JSON schema and the reference, both made from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from supervisor.config import config_reference, schema
from supervisor.config.keys import block_of, fields_of
from supervisor.settings import LaneSettings, TopSettings
from supervisor.settings.block import Block

REPOSITORY = Path(__file__).parents[2]


def accepts(text: str) -> bool:
    validator = jsonschema.Draft202012Validator(schema())
    return bool(validator.is_valid(yaml.safe_load(text)))


def test_the_schema_is_itself_valid_and_accepts_the_default_file() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert accepts((REPOSITORY / "lanes.yaml").read_text())


@pytest.mark.parametrize(
    "text",
    [
        "lanes: {}",
        "listen: x",
        "lanes: {a: {mdoel: m}}",
        "lanes: {a: {model: m, name: a}}",
        "lanes: {a: {model: m, canary: {evry: 5m}}}",
        "lanes: {a: {model: m, drain_timeout: 90}}",
        "lanes: {a: {model: m, drain_timeout: 90x}}",
        "lanes: {a: {model: m, kind: chta}}",
        "lanes: {a/b: {model: m}}",
        "defaults: {knd: chat}\nlanes: {a: {model: m}}",
    ],
)
def test_the_schema_rejects_a_typo(text: str) -> None:
    assert not accepts(text)


@pytest.mark.parametrize(
    "body",
    [
        "max_queue: 2k",
        "max_queue: 2",
        'drain_timeout: "${env:D}"',
        "canary: {budget: 1%, timeout: auto}",
        "canary: {budget: 0.01}",
        "memory: {limit: null}",
        "idle_unload: 30m",
        "headers: {A: b}",
    ],
)
def test_the_schema_accepts_what_the_loader_accepts(body: str) -> None:
    assert accepts(f"lanes: {{a: {{model: m, {body}}}}}")


def keys_of(block: type[Block], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, field in fields_of(block).items():
        inner = block_of(field)
        found += keys_of(inner, f"{prefix}{name}.") if inner else [prefix + name]
    return found


@pytest.mark.parametrize("block", [TopSettings, LaneSettings])
def test_the_reference_has_a_row_with_a_meaning_for_every_key(block: type[Block]) -> None:
    rows = {row.split(" | ")[0].removeprefix("| "): row for row in config_reference().splitlines()}
    for key in keys_of(block):
        assert len(rows[f"`{key}`"].split(" | ")[3]) > 10


def test_the_reference_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before: Any = config_reference(), schema()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert (config_reference(), schema()) == before
