"""What is wrong with lanes.yaml, each with its line, its key and the remedy; never with a secret's value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from supervisor.errors import FreshlaneError

KeyPath = tuple[str | int, ...]
"""Where a value is: keys of mappings and positions in lists, from the top of the file."""

_SECRET_KEYS = {"api_keys", "admin_keys", "headers", "env", "webhook"}
_SIMPLE_KEY = re.compile(r"[^\s\"'\[\]]{1,80}")
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. ``line`` is None where the text has no place in a file."""

    path: KeyPath
    text: str
    line: int | None = None
    file: str | None = None

    @property
    def lane(self) -> str | None:
        """The lane it belongs to; None if it concerns the whole daemon."""
        return str(self.path[1]) if len(self.path) > 1 and self.path[0] == "lanes" else None

    @property
    def key(self) -> str:
        """The key path as one would write it: ``lanes.qwen.canary.prompt_tokens[0]``."""
        return show_path(self.path)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.key, self.text) if part)


class ConfigError(FreshlaneError):
    """The file cannot be used. ``problems`` holds all that is wrong with it, sorted by line."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems), key=lambda found: (found.line or 0, found.key, found.text))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def show_path(path: KeyPath) -> str:
    """``lanes.qwen.serves`` or, in a list, ``aliases[1]``."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += ("." if shown else "") + (part if _SIMPLE_KEY.fullmatch(part) else shown_value(part))
    return shown


def is_secret(path: KeyPath) -> bool:
    """Whether the value at ``path`` must not be shown: keys, headers, the environment."""
    return any(part in _SECRET_KEYS for part in path)


def got(value: object, path: KeyPath) -> str:
    """``; got "5"``, or nothing where the value is a secret or says nothing."""
    is_plain = isinstance(value, str | int | float) or value is None
    return "" if is_secret(path) or value is None or not is_plain else f"; got {shown_value(value)}"


def shown_value(value: object) -> str:
    """A value as written, cut short, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    printable = "".join(letter if letter.isprintable() else "?" for letter in value)
    cut = printable if len(printable) <= _LONGEST_SHOWN else printable[:_LONGEST_SHOWN] + "…"
    return f'"{cut}"'
