"""Strict YAML with line numbers: one mapping, text keys, no duplicates, no anchors, no tags, no surprises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from supervisor.config.problems import KeyPath, Problem, is_secret, shown_value
from supervisor.config.scalars import SurprisingScalarError, read_bare

LARGEST_FILE = 256 * 1024
DEEPEST = 20


class Spoiled:
    """Stands where a value was refused, so that nobody complains about it again."""


SPOILED = Spoiled()


@dataclass(slots=True)
class Document:
    """The tree of a file, the line of every key and item, and what is wrong so far."""

    file: str
    tree: dict[str, Any] = field(default_factory=dict)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    is_whole: bool = True
    """False if reading had to stop, so that what is missing may only be unread."""

    def complain(self, path: KeyPath, text: str, line: int | None = None) -> None:
        """Adds a problem at the line of ``path`` or, where it is not in the file, of its nearest parent."""
        self.problems.append(Problem(path, text, line or self.line_of(path), self.file))

    def line_of(self, path: KeyPath) -> int:
        """The line of the key or item, or of the nearest parent that is in the file. The first line is 1."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_document(content: bytes, file: str) -> Document:
    """Reads ``content``. Never raises: what is wrong is in the document's problems."""
    document = Document(file)
    text = _decoded(content, document)
    if text is not None:
        _Builder(document, text).build()
    return document


def _decoded(content: bytes, document: Document) -> str | None:
    document.is_whole = False
    if len(content) > LARGEST_FILE:
        document.complain((), f"is larger than {LARGEST_FILE // 1024} KiB, which no lanes.yaml is")
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        document.complain((), "is not UTF-8; save the file as UTF-8", line)
        return None
    document.is_whole = True
    return text


class _StopReadingError(Exception):
    """Nothing sensible can be read from here on."""


class _Builder:
    """Builds the tree from YAML events, so that each key's line is known and no bomb is ever unfolded."""

    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self._text = text
        self._events: Iterator[yaml.Event] = iter(())

    def build(self) -> None:
        try:
            self._events = iter(yaml.parse(self._text, Loader=yaml.SafeLoader))
            self._read_stream()
        except _StopReadingError:
            self._document.is_whole = False
        except yaml.MarkedYAMLError as error:
            self._stop(_syntax_text(error, self._text), error.problem_mark or error.context_mark)
        except yaml.reader.ReaderError as error:
            line = self._text.count("\n", 0, error.position) + 1
            self._document.complain((), "holds a character that YAML does not allow; remove it", line)
            self._document.is_whole = False
        except (yaml.YAMLError, ValueError, OverflowError):
            # PyYAML lets these through for escapes and directives with impossible numbers.
            self._stop("is not YAML: a number in an escape or a directive is out of range", None)

    def _stop(self, text: str, mark: yaml.Mark | None) -> None:
        self._document.complain((), text, mark.line + 1 if mark else None)
        self._document.is_whole = False

    def _read_stream(self) -> None:
        next(self._events)
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return
        event = next(self._events)
        if isinstance(event, yaml.MappingStartEvent):
            self._document.tree = self._mapping(event, ())
        elif not self._is_empty(event):
            self._document.complain((), "must be keys and values, such as `lanes:`", _line(event))
            raise _StopReadingError
        next(self._events)
        after = next(self._events)
        if isinstance(after, yaml.DocumentStartEvent):
            self._document.complain((), "holds a second document (`---`); write one", _line(after))

    def _is_empty(self, event: yaml.Event) -> bool:
        return isinstance(event, yaml.ScalarEvent) and event.style is None and event.value in {"", "~", "null"}

    def _value(self, event: yaml.Event, path: KeyPath) -> Any:
        if len(path) > DEEPEST:
            self._document.complain(path[:3], f"is nested deeper than {DEEPEST} levels", _line(event))
            raise _StopReadingError
        if isinstance(event, yaml.AliasEvent):
            self._document.complain(path, "is a YAML alias (*), which is not read; put shared keys under `defaults`")
            return SPOILED
        if _is_adorned(event):
            self._document.complain(path, "has a YAML anchor (&) or tag (!), which is not read; remove it")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path)
        return self._scalar(event, path) if isinstance(event, yaml.ScalarEvent) else SPOILED

    def _sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            place = (*path, len(items))
            self._document.lines[place] = _line(event)
            items.append(self._value(event, place))
        return items

    def _mapping(self, start: yaml.Event, path: KeyPath) -> dict[str, Any]:
        self._document.lines.setdefault(path, _line(start))
        block: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or _has_surrogate(event.value):
                self._document.complain(path, "has a key that is not text", _line(event))
                self._skip(event)
                self._skip(next(self._events))
                continue
            self._entry(block, event, path)
        return block

    def _entry(self, block: dict[str, Any], key: yaml.ScalarEvent, path: KeyPath) -> None:
        place = (*path, str(key.value))
        if key.value in block:
            first = self._document.lines[place]
            self._document.complain(place, f"is written twice; first in line {first}", _line(key))
            self._skip(next(self._events))
            return
        self._document.lines[place] = _line(key)
        if self._is_good_key(key, place):
            block[key.value] = self._value(next(self._events), place)
        else:
            block[key.value] = SPOILED
            self._skip(next(self._events))

    def _is_good_key(self, key: yaml.ScalarEvent, place: KeyPath) -> bool:
        if _is_adorned(key):
            self._document.complain(place, "has a YAML anchor, alias or tag on its key; remove it")
            return False
        if key.style is None and not _is_text(key.value):
            self._document.complain(place, "is not plainly text as a key; write it in quotes")
            return False
        return True

    def _skip(self, event: yaml.Event) -> None:
        """Reads past a value without keeping it or complaining."""
        depth = _depth_change(event)
        while depth:
            depth += _depth_change(next(self._events))

    def _scalar(self, event: yaml.ScalarEvent, path: KeyPath) -> Any:
        text = str(event.value)
        if _has_surrogate(text):
            self._document.complain(path, "holds half a character (a lone surrogate)")
            return SPOILED
        if event.style is not None:
            return text
        try:
            return read_bare(text)
        except SurprisingScalarError as surprise:
            shown = "is ambiguous" if is_secret(path) else f"bare {shown_value(text)[1:-1]} is ambiguous: {surprise}"
            self._document.complain(path, f"{shown}; write it in quotes or in another way")
            return SPOILED


_QUOTED = re.compile(r" ?['\"][^'\"]{2,}['\"]")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _is_adorned(event: yaml.Event) -> bool:
    return getattr(event, "anchor", None) is not None or getattr(event, "tag", None) is not None


def _is_text(written: str) -> bool:
    try:
        return type(read_bare(written)) is str
    except SurprisingScalarError:
        return False


def _depth_change(event: yaml.Event) -> int:
    if isinstance(event, yaml.CollectionStartEvent):
        return 1
    return -1 if isinstance(event, yaml.CollectionEndEvent) else 0


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _syntax_text(error: yaml.MarkedYAMLError, text: str) -> str:
    """The parser's words without anything quoted from the file, which may be a secret."""
    mark = error.problem_mark
    if mark is not None and text[mark.index : mark.index + 1] == "\t":
        return "is indented with a tab; use spaces"
    words = _QUOTED.sub("", error.problem or error.context or "it cannot be read")
    return f"is not YAML: {words}; quote text that holds any of : # {{ }} [ ] , & * ! %"
