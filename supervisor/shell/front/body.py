"""A request's body: which model it names, and the same bytes with another name in that one place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(rb"[^,}\]\s]++")
_NESTED = re.compile(rb'[^"\[\]{}]*+("(?:[^"\\]++|\\.)*+"|[\[\]{}])', re.DOTALL)
_PART_NAME = re.compile(rb'(?i)^content-disposition:[^\r\n]*;[ \t]*name="?model"?[ \t]*(?:;|\r|$)', re.MULTILINE)


_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
_LONGEST_LIMIT = 9
"""Digits; nobody means more."""

USUAL_ANSWER_TOKENS = 256
"""Of an answer whose length nobody limits."""


class UnreadableBodyError(Exception):
    """The body is not what its content type says."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value lies in the bytes."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ModelBody:
    """A body, the name of the model in it, and where that stands. ``is_json`` tells how a name is written."""

    content: bytes
    model: str | None
    spans: tuple[Span, ...]
    wants_stream: bool
    is_json: bool
    max_tokens: int | None = None
    """How many tokens the answer may have, where the body says so."""

    @property
    def silent_tokens(self) -> int:
        """Tokens that are written before the first byte of the answer can be seen: all of them, if it is no stream."""
        if self.wants_stream or not self.is_json:
            return 0
        return USUAL_ANSWER_TOKENS if self.max_tokens is None else self.max_tokens

    def naming(self, model: str) -> bytes:
        """The same bytes with ``model`` as the model's name."""
        if model == self.model:
            return self.content
        written = json.dumps(model).encode() if self.is_json else model.encode()
        parts, at = [], 0
        for span in self.spans:
            parts += [self.content[at : span.start], written]
            at = span.end
        return b"".join((*parts, self.content[at:]))


def read_body(content: bytes, content_type: str) -> ModelBody:
    """Find the model in JSON or multipart bytes. Raises UnreadableBodyError."""
    header = Message()
    header["Content-Type"] = content_type
    if header.get_content_maintype() == "multipart":
        boundary = header.get_boundary()
        if not boundary:
            raise UnreadableBodyError("a multipart body whose Content-Type names no boundary")
        return _read_multipart(content, boundary.encode())
    return _read_json(content)


def _read_json(content: bytes) -> ModelBody:
    spans: list[Span] = []
    model: str | None = None
    wants_stream = False
    max_tokens: int | None = None
    for key, span in _pairs(content):
        if key == "model":
            value = _value(content, span)
            if not isinstance(value, str):
                raise UnreadableBodyError("`model` must be a string")
            model = value
            spans.append(span)
        elif key == "stream":
            wants_stream = content[span.start : span.end] == b"true"
        elif key in _LIMITS and content[span.start : span.end].isdigit():
            max_tokens = int(content[span.start : span.end][:_LONGEST_LIMIT])
    return ModelBody(content, model, tuple(spans), wants_stream, is_json=True, max_tokens=max_tokens)


def _pairs(content: bytes) -> Iterator[tuple[str, Span]]:
    """The keys of the outermost object, and where their values lie."""
    at = _expect(content, _skip(content, 0), b"{")
    at = _skip(content, at)
    if content[at : at + 1] == b"}":
        return
    while True:
        key_end = _end_of_string(content, at)
        key = _value(content, Span(at, key_end))
        start = _skip(content, _expect(content, _skip(content, key_end), b":"))
        end = _end_of_value(content, start)
        yield str(key), Span(start, end)
        at = _skip(content, end)
        if content[at : at + 1] == b"}":
            return
        at = _skip(content, _expect(content, at, b","))


def _value(content: bytes, span: Span) -> object:
    try:
        return json.loads(content[span.start : span.end])
    except (ValueError, RecursionError) as error:
        raise UnreadableBodyError(f"the body is not JSON at byte {span.start}") from error


def _skip(content: bytes, at: int) -> int:
    found = _SPACE.match(content, at)
    return found.end() if found else at


def _expect(content: bytes, at: int, what: bytes) -> int:
    if content[at : at + 1] != what:
        raise UnreadableBodyError(f"the body is not a JSON object: {what.decode()} expected at byte {at}")
    return at + 1


def _end_of_string(content: bytes, at: int) -> int:
    found = _STRING.match(content, at)
    if not found:
        raise UnreadableBodyError(f"the body is not JSON: a string expected at byte {at}")
    return found.end()


def _end_of_value(content: bytes, at: int) -> int:
    first = content[at : at + 1]
    if first == b'"':
        return _end_of_string(content, at)
    if first not in (b"{", b"["):
        found = _PLAIN.match(content, at)
        if not found:
            raise UnreadableBodyError(f"the body is not JSON: a value expected at byte {at}")
        return found.end()
    depth, at = 1, at + 1
    while depth:
        found = _NESTED.match(content, at)
        if not found:
            raise UnreadableBodyError("the body is not JSON: it ends within a value")
        at = found.end()
        mark = found[1]
        depth += (mark in (b"{", b"[")) - (mark in (b"}", b"]"))
    return at


def _read_multipart(content: bytes, boundary: bytes) -> ModelBody:
    spans: list[Span] = []
    model: str | None = None
    wants_stream = False
    for headers, span in _parts(content, b"--" + boundary):
        if _PART_NAME.search(headers) and b"filename" not in headers.lower():
            spans.append(span)
            model = content[span.start : span.end].decode(errors="replace")
        elif b'name="stream"' in headers:
            wants_stream = content[span.start : span.end].lower() in (b"true", b"1")
    return ModelBody(content, model, tuple(spans), wants_stream, is_json=False)


def _parts(content: bytes, delimiter: bytes) -> Iterator[tuple[bytes, Span]]:
    """The headers of each part, and where its content lies."""
    at = content.find(delimiter)
    while at >= 0:
        at += len(delimiter)
        end = content.find(b"\r\n" + delimiter, at)
        if end < 0:
            return
        head_end = content.find(b"\r\n\r\n", at, end + 2)
        if head_end >= 0:
            yield content[at + 2 : head_end], Span(min(head_end + 4, end), end)
        at = end + 2
