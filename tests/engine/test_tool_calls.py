"""Tool calls in streamed text."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from engine.tool_calls import ToolCall, ToolCallFinder

START, END = "<tool_call>", "</tool_call>"
WEATHER = '{"name": "weather", "arguments": {"city": "Zürich"}}'
TEXT = f"Let me see. {START}\n{WEATHER}\n{END}{START}{WEATHER}{END} Done."


def parted(text: str, cuts: list[int], end: str = END) -> tuple[str, list[ToolCall]]:
    finder = ToolCallFinder(START, end, json.loads)
    said, called = "", []
    for first, last in itertools.pairwise([0, *sorted(cuts), len(text)]):
        more, calls = finder.feed(text[first:last])
        said, called = said + more, called + calls
    more, calls = finder.flush()
    return said + more, called + calls


@given(st.lists(st.integers(0, len(TEXT)), max_size=12))
def test_calls_are_found_however_the_text_is_cut(cuts):
    call = ToolCall("weather", '{"city": "Zürich"}')
    assert parted(TEXT, cuts) == ("Let me see.  Done.", [call, call])


def test_a_call_may_end_with_the_text():
    assert parted(f"a{START}{WEATHER}", [], end="") == ("a", [ToolCall("weather", '{"city": "Zürich"}')])


@given(st.text(alphabet='<>/tool_call{}" ', max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_what_is_no_call_comes_back_as_it_was(text, cuts):
    assert parted(text, cuts) == (text, [])


def test_a_call_that_is_cut_off_or_broken_is_shown():
    for text in (f"a{START}{WEATHER[:20]}", f"a{START}nonsense{END}b", f"{START}{END}", f"{START}[3]{END}"):
        assert parted(text, []) == (text, [])
