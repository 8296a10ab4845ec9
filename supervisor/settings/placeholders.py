"""``{port} {model} {lane} {state_dir}`` in a command and its environment. ``{{port}}`` stands for a literal {port}."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACEHOLDERS = ("port", "model", "lane", "state_dir")

# JSON in a command, such as {"enable_thinking":false}, is no placeholder: only a bare name in braces is.
# Nor is a shell's ${HOME}.
_PLACEHOLDER = re.compile(r"(?<!\$)(?:\{\{([A-Za-z_]+)\}\}|\{([A-Za-z_]+)\})")


def placeholders_in(text: str) -> set[str]:
    """The names in braces, known or not."""
    return {found[2] for found in _PLACEHOLDER.finditer(text) if found[2]}


def expand(text: str, values: Mapping[str, str]) -> str:
    """``text`` with each placeholder replaced. Raises KeyError for one that ``values`` lacks."""
    return _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], text)
