"""Stop strings over streams, and text out of tokens: however it is cut, the same comes out."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.detokenize import Detokenizer
from engine.stops import StopFinder

LETTERS = st.text("abc", max_size=40)
STOPS = st.lists(st.text("abc", min_size=1, max_size=4), max_size=3)
CUTS = st.lists(st.integers(0, 40), max_size=8)


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def one_by_one(text: str, stops: list[str]) -> tuple[str, bool]:
    """The plain meaning: look after each character whether a stop string is whole."""
    for end in range(1, len(text) + 1):
        found = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if found:
            return text[: end - max(found)], True
    return text, False


@given(LETTERS, STOPS, CUTS)
def test_what_is_shown_does_not_depend_on_where_the_text_was_cut(text, stops, cuts):
    finder = StopFinder(stops)
    shown = "".join(finder.feed(piece) for piece in pieces(text, cuts)) + finder.flush()
    assert (shown, finder.is_found) == one_by_one(text, stops)


@given(LETTERS, STOPS, CUTS)
def test_nothing_is_shown_that_a_stop_string_would_take_back(text, stops, cuts):
    finder = StopFinder(stops)
    whole, _ = one_by_one(text, stops)
    shown = ""
    for piece in pieces(text, cuts):
        shown += finder.feed(piece)
        assert whole.startswith(shown)


@given(LETTERS, STOPS)
def test_no_more_is_held_back_than_a_stop_string_could_take(text, stops):
    finder = StopFinder(stops)
    shown = finder.feed(text)
    if not finder.is_found:
        assert len(text) - len(shown) < max((len(stop) for stop in stops), default=1)


def test_nothing_comes_after_a_stop_string():
    finder = StopFinder(["END"])
    assert finder.feed("one EN") == "one "
    assert finder.feed("D two") == ""
    assert finder.is_found
    assert finder.feed("three") + finder.flush() == ""


def bytes_as_text(tokens: list[int]) -> str:
    """A tokenizer whose tokens are bytes."""
    return bytes(tokens).decode("utf-8", "replace")


@given(st.text(max_size=30), st.lists(st.integers(0, 90), max_size=8), st.text(max_size=6))
def test_characters_of_several_tokens_come_whole(text, cuts, before):
    tokens = list(text.encode())
    places = [0, *sorted(cuts), len(tokens)]
    detokenizer = Detokenizer(bytes_as_text, list(before.encode()))
    parts = [detokenizer.feed(tokens[start:end]) for start, end in itertools.pairwise(places)]
    assert "".join(parts) + detokenizer.flush() == text
    assert "\ufffd" in text or not any("\ufffd" in part for part in parts)


def test_bytes_that_are_no_text_are_not_held_for_ever():
    detokenizer = Detokenizer(bytes_as_text)
    shown = "".join(detokenizer.feed([0xFF]) for _ in range(100))
    assert 80 <= len(shown) <= 100
    assert len(shown + detokenizer.flush()) == 100


def test_half_a_character_at_the_end_is_shown_as_broken():
    detokenizer = Detokenizer(bytes_as_text)
    assert detokenizer.feed(list("é".encode()[:1])) == ""
    assert detokenizer.flush() == "\ufffd"
    assert detokenizer.flush() == ""
