"""Text out of tokens as they come, never half a character. Pure; the tokenizer's `decode` is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

BROKEN = "\ufffd"
CONTEXT_TOKENS = 6
"""Tokens before a new one that are decoded with it: some tokenizers write a word's space only after another word."""
MOST_HELD = 8
"""A character has at most four bytes, so what is held for longer is no text: it is shown as broken."""

Decode = Callable[[list[int]], str]


class Detokenizer:
    """Decodes one output. Costs one decode of a few tokens a call, however long the output is."""

    def __init__(self, decode: Decode, before: Sequence[int] = ()) -> None:
        """`before` are the tokens the output follows; their text is not given again."""
        self._decode = decode
        self._context = list(before[-CONTEXT_TOKENS:])
        self._held: list[int] = []

    def feed(self, tokens: Sequence[int]) -> str:
        """The text that these tokens complete."""
        self._held += tokens
        text = self._text()
        if text.endswith(BROKEN) and len(self._held) <= MOST_HELD:
            return ""
        self._commit()
        return text

    def flush(self) -> str:
        """No more tokens come: what was held, broken as it may be."""
        text = self._text() if self._held else ""
        self._commit()
        return text

    def _text(self) -> str:
        known = self._decode(self._context)
        return self._decode(self._context + self._held)[len(known) :]

    def _commit(self) -> None:
        self._context = (self._context + self._held)[-CONTEXT_TOKENS:]
        self._held = []
