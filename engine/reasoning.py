"""What a model thinks before it answers, told apart from the answer as the text streams. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.stops import StopFinder

NEAR_THE_END = 64
"""A template that lets the model think opens its reasoning in the last tokens of the prompt."""


class ReasoningFinder:
    """Takes text piece by piece and parts it at the markers, which are shown to nobody."""

    def __init__(self, start: str, end: str, *, is_inside: bool) -> None:
        """`is_inside`: the prompt has opened the reasoning already."""
        self._start, self._end = start, end
        self._is_inside = is_inside
        self._finder = StopFinder([end if is_inside else start])

    def feed(self, piece: str) -> tuple[str, str]:
        """The reasoning and the answer that may be shown now."""
        thought = said = ""
        while True:
            taken = self._finder.feed(piece)
            if self._is_inside:
                thought += taken
            else:
                said += taken
            if not self._finder.is_found:
                return thought, said
            piece = self._finder.rest
            self._is_inside = not self._is_inside
            self._finder = StopFinder([self._end if self._is_inside else self._start])

    def flush(self) -> tuple[str, str]:
        """No more text comes."""
        rest = self._finder.flush()
        return (rest, "") if self._is_inside else ("", rest)


def is_reasoning(tokenizer: Any, prompt: Sequence[int]) -> bool:
    """Whether the prompt ends inside the model's reasoning. `tokenizer` is mlx-lm's TokenizerWrapper."""
    if not tokenizer.has_thinking:
        return False
    end = list(prompt[-NEAR_THE_END:])
    return bool(tokenizer.rfind_think_start(end) > tokenizer.rfind_think_end(end))
