"""Checks one block against its model and words what pydantic finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from supervisor.config.document import SPOILED
from supervisor.config.keys import meant_word
from supervisor.config.problems import KeyPath
from supervisor.settings.block import FILE_FOLDER, Block

UNKNOWN_KEY = "extra_forbidden"
Model = TypeVar("Model", bound=Block)

_QUOTED = re.compile(r"'([^']*)'")
_SHAPES = {
    "model_type": "must be keys and values",
    "dict_type": "must be keys and values",
    "mapping_type": "must be keys and values",
    "tuple_type": "must be a list, such as [a, b]",
    "list_type": "must be a list, such as [a, b]",
    "string_type": "must be text",
}


class Finding:
    """One complaint about a block: where in it, of what kind, and the remedy."""

    __slots__ = ("is_unknown_key", "path", "shows_value", "text", "value")

    def __init__(self, details: ErrorDetails) -> None:
        self.path: KeyPath = tuple(part for part in details["loc"] if part != "[key]")
        self.is_unknown_key = details["type"] == UNKNOWN_KEY
        self.value: Any = details["input"]
        self.text = _worded(details)
        self.shows_value = not self.is_unknown_key and not isinstance(self.value, dict | list)


def check(model: type[Model], values: dict[str, Any], folder: Path) -> Model | list[Finding]:
    """The block, or all that is wrong with ``values``, less what was refused before."""
    try:
        return model.model_validate(values, context={FILE_FOLDER: folder})
    except ValidationError as error:
        return list(_new_findings(error, values))


def _new_findings(error: ValidationError, values: dict[str, Any]) -> Iterator[Finding]:
    for details in error.errors(include_url=False):
        finding = Finding(details)
        if not is_spoiled(values, finding.path):
            yield finding


def is_spoiled(tree: Any, path: KeyPath) -> bool:
    """Whether the value at ``path``, or one that holds it, was already refused."""
    for part in path:
        if tree is SPOILED:
            return True
        tree = _inside(tree, part)
    return tree is SPOILED


def has(tree: Any, path: KeyPath) -> bool:
    """Whether ``path`` is written in ``tree``."""
    for part in path:
        if not (isinstance(tree, dict) and part in tree) and not (
            isinstance(tree, list) and isinstance(part, int) and part < len(tree)
        ):
            return False
        tree = _inside(tree, part)
    return True


def at(tree: Any, path: KeyPath) -> Any:
    """What is at ``path``; None where there is nothing."""
    for part in path:
        tree = _inside(tree, part)
    return tree


def _inside(tree: Any, part: str | int) -> Any:
    if isinstance(tree, dict):
        return tree.get(part)
    if isinstance(tree, list) and isinstance(part, int) and part < len(tree):
        return tree[part]
    return None


def _worded(details: ErrorDetails) -> str:
    kind = details["type"]
    if kind == "literal_error":
        words = _QUOTED.findall(str(details.get("ctx", {}).get("expected", "")))
        meant = meant_word(details["input"], words)
        return f"must be one of {', '.join(words)}" + (f'; did you mean "{meant}"?' if meant else "")
    if kind == "value_error":
        return str(details.get("ctx", {}).get("error", details["msg"]))
    if kind in _SHAPES:
        return "is empty; give it a value or remove the key" if details["input"] is None else _SHAPES[kind]
    return details["msg"]
