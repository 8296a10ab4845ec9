"""docs/config.md, made from the models: each key with its type, default and meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from supervisor.config.keys import block_of, fields_of, literal_words
from supervisor.presets import PRESETS
from supervisor.settings import LaneSettings, TopSettings
from supervisor.settings.block import Block
from supervisor.settings.numbers import Unit

_HEAD = """# lanes.yaml, key by key

Made from the models by `freshlane`'s own code; the rules behind the types:

- Durations need a unit: `200ms`, `90s`, `5m`, `6h`, `7d`. Sizes too: `64MB` (10^6), `24GB` (10^9), `24GiB` (2^30).
- Counts may use `k` and `M`. Shares are `1%` or `0.01`, at most `100%`. Ratios lie between 0 and 1.
- `defaults` and lanes merge key by key; a lane's own value wins, then `defaults`, then its preset.
- `${env:NAME}`, `${env:NAME:-default}` and `${file:PATH}` fill in values from outside. An unset variable is an error.
- `~` is the home folder; other relative paths count from the file's own folder.
- A command and its `env` may hold `{port}`, `{model}`, `{lane}` and `{state_dir}`; `{{port}}` is a literal `{port}`.
- A lane has one source: `model` alone (our engine), `command`, `preset`, or `attach`.
"""


def config_reference() -> str:
    """The whole page, in Markdown."""
    parts = [
        _HEAD,
        _section("The daemon", TopSettings),
        "`defaults` takes any key of a lane. `lanes` holds the lanes by name.\n",
        _section("A lane", LaneSettings),
        _presets(),
    ]
    return "\n".join(parts)


def _section(title: str, block: type[Block]) -> str:
    rows = "\n".join(_rows(block, ""))
    return f"## {title}\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n{rows}\n"


def _rows(block: type[Block], prefix: str) -> Iterator[str]:
    for name, field in fields_of(block).items():
        inner = block_of(field)
        if inner is not None:
            yield from _rows(inner, f"{prefix}{name}.")
            continue
        cells = (f"`{prefix}{name}`", _kind(field), _default(field), field.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _kind(field: FieldInfo) -> str:
    unit = next((note for note in field.metadata if isinstance(note, Unit)), None)
    if unit is not None:
        return unit.kind.removeprefix("a ") + (f" or `{unit.word}`" if unit.word else "")
    words = literal_words(field)
    if words:
        return ", ".join(f"`{word}`" for word in words)
    kind = _without_none(field.annotation)
    if get_origin(kind) is tuple:
        return "list"
    return "keys and values" if get_origin(kind) is dict else "text"


def _without_none(kind: Any) -> Any:
    parts = [part for part in get_args(kind) if part is not type(None)]
    return parts[0] if type(None) in get_args(kind) and len(parts) == 1 else kind


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "by platform"
    default = field.default
    if default is None or default in ([], {}):
        return "none"
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _presets() -> str:
    rows = [
        f"| `{preset.name}` | {preset.title} | `{' '.join(preset.fills['command'])}` | {preset.tested} |"
        for preset in PRESETS.values()
    ]
    head = "## Presets\n\n| preset | server | command | known from |\n| --- | --- | --- | --- |\n"
    return head + "\n".join(rows) + "\n"
