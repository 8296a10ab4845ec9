"""JSON that every reader can read, whatever comes in."""

from __future__ import annotations

import json

from supervisor.jsontext import decode, encode


def test_half_a_character_is_escaped_and_can_be_written_anywhere() -> None:
    text = encode({"reason": "half \ud800 of one", "whole": "\U0001f642 \u00e4"})
    assert json.loads(text.encode()) == {"reason": "half \ud800 of one", "whole": "\U0001f642 \u00e4"}


def test_what_no_json_can_say_becomes_null() -> None:
    assert json.loads(encode({"rate": float("nan"), "all": [float("inf")]})) == {"rate": None, "all": [None]}


def test_what_is_torn_or_nested_beyond_reason_is_nothing() -> None:
    assert decode(b'{"a": ') is None
    assert decode("[" * 100_000 + "]" * 100_000) is None
