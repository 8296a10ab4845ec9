"""What a bare word in YAML means here: YAML 1.2's plain meaning, and a refusal where YAML 1.1 would surprise."""

from __future__ import annotations

import re
from typing import Any

import yaml

from supervisor.config.problems import shown_value

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FRACTION = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,17}")
_WITH_EXPONENT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0[oO][0-7]+")

_resolver = yaml.resolver.Resolver()


class BareWord(str):
    """A bare ``on`` or ``off``: a word for a key that knows it, no text for any other."""

    __slots__ = ()


class SurprisingScalarError(ValueError):
    """A bare scalar that YAML 1.1 would turn into something else; the text says into what."""


def read_bare(written: str) -> Any:
    """The value of an unquoted scalar. Raises SurprisingScalarError where it is not plainly one thing."""
    if written in _NULLS:
        return None
    if written in _BOOLEANS:
        return _BOOLEANS[written]
    if written in {"on", "off"}:
        return BareWord(written)
    if _WHOLE.fullmatch(written):
        return int(written)
    if _FRACTION.fullmatch(written):
        return float(written)
    meaning = _surprise(written)
    if meaning is not None:
        raise SurprisingScalarError(meaning)
    return written


def _surprise(written: str) -> str | None:
    """What YAML 1.1 would make of it; None if it is text for everyone."""
    if _WITH_EXPONENT.fullmatch(written) or _OTHER_BASE.fullmatch(written):
        return "some readers take it for a number, others for text"
    tag = str(_resolver.resolve(yaml.ScalarNode, written, (True, False)))  # type: ignore[no-untyped-call]
    if tag == "tag:yaml.org,2002:str":
        return None
    kind = tag.rpartition(":")[2]
    if kind == "bool":
        return "YAML 1.1 reads it as true or false"
    if kind in {"int", "float"}:
        return f"YAML 1.1 reads it as the number {_number(written)}".rstrip()
    return "YAML 1.1 reads it as a date" if kind == "timestamp" else "it has a special meaning in YAML 1.1"


def _number(written: str) -> str:
    try:
        value = yaml.safe_load(written)
    except (yaml.YAMLError, ValueError, OverflowError):
        return ""
    return shown_value(value) if isinstance(value, int | float) and len(str(value)) <= 20 else ""
