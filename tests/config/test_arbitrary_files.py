"""Whatever the file holds, loading it ends in settings or in a ConfigError."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.config import ConfigError
from supervisor.config.keys import block_of, fields_of
from supervisor.config.load import load_content
from supervisor.settings import LaneSettings, TopSettings
from supervisor.settings.block import Block

WORDS = ["auto", "off", "on", "yes", "010", "3:30", "5m", "0s", "1%", "64MB", "280k", "omlx", "vllm", "draft", "dflash"]
FILLED = ["{port}", "{model}", "{x}", "{{x}}", "${env:A}", "${env:", "${file:.}", "${file:\0}", "${file:lanes}"]
PLACES = ["~", "/", ".", "~nobody/x", "../x", "http://[", "http://h:99999", "http://h", "[::1]:1", "0.0.0.0:1"]
ODD = ["", "a b", "01:00-06:00 Europe", "01:00-06:00 ../x", "\x85", "\u2028", "=", "<<"]
TRICKY = st.sampled_from([*WORDS, *FILLED, *PLACES, *ODD])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TRICKY | st.text(max_size=8) | st.dates()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TRICKY | st.integers(), inner, max_size=3)
)


def blocks(block: type[Block]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with the block's own keys and any values, most of them wrong."""
    inner = {name: block_of(field) for name, field in fields_of(block).items()}
    keys = {name: VALUES if kind is None else blocks(kind) | VALUES for name, kind in inner.items()}
    return st.lists(st.sampled_from(sorted(keys)), max_size=5, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: keys[name] for name in chosen})
    )


def load_or_refuse(content: bytes) -> None:
    refusal: ConfigError | None = None
    try:
        load_content(content, "lanes.yaml", Path("/nowhere"), {"A": "a"})
    except ConfigError as error:
        refusal = error
    if refusal is not None:
        assert refusal.problems
        assert all("\n" not in str(problem) for problem in refusal.problems)
        assert str(refusal).encode()


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_refused(content: bytes) -> None:
    load_or_refuse(content)


@settings(deadline=None)
@given(st.text(st.sampled_from(list("lanes:\n  {}[]\"'#&*!|>%@`-?,~<=\t01\\xU\0\ufeff\x85")), max_size=60))
def test_any_text_of_yamls_own_characters_loads_or_is_refused(text: str) -> None:
    load_or_refuse(text.encode())
    load_or_refuse(f"lanes:\n  a:\n    model: {text}".encode())


@settings(max_examples=80, deadline=None)
@given(blocks(TopSettings), blocks(LaneSettings) | VALUES, st.dictionaries(TRICKY, blocks(LaneSettings), max_size=3))
def test_any_values_under_known_keys_load_or_are_refused(
    top: dict[str, Any], defaults: Any, lanes: dict[str, Any]
) -> None:
    document = {**top, "defaults": defaults, "lanes": lanes}
    load_or_refuse(yaml.safe_dump(document, allow_unicode=True).encode("utf-8", "replace"))
