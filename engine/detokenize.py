"""Text out of tokens as they come, never half a character. Pure; the tokenizer's `decode` is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

BROKEN = "\ufffd"
CONTEXT_TOKENS = 6
"""Tokens before a new one that are decoded with it: some tokenizers write a word's space only after another word."""
LONGEST_BROKEN = 4
"""A character has at most four bytes: of more broken ones at the end, the first will stay broken."""
MOST_HELD = 64
"""Tokens decoded together because each ended inside a character; beyond, the text is taken as it is."""

Decode = Callable[[list[int]], str]


class Detokenizer:
    """Decodes one output. Costs one decode of a few tokens a call, however long the output is."""

    def __init__(self, decode: Decode, before: Sequence[int] = ()) -> None:
        """`before` are the tokens the output follows; their text is not given again."""
        self._decode = decode
        self._context = list(before[-CONTEXT_TOKENS:])
        self._held: list[int] = []
        self._shown = 0

    def feed(self, tokens: Sequence[int]) -> str:
        """The text that these tokens complete."""
        is_overlong = len(self._held) > MOST_HELD
        self._held += tokens
        text = self._text()
        broken = min(len(text) - len(text.rstrip(BROKEN)), LONGEST_BROKEN)
        if is_overlong or not broken:
            return self._commit(text)
        # What stands before a half character is whole, though the token that holds both has to stay.
        shown, self._shown = self._shown, max(self._shown, len(text) - broken)
        return text[shown : self._shown]

    def flush(self) -> str:
        """No more tokens come: what was held, broken as it may be."""
        return self._commit(self._text())

    def _text(self) -> str:
        known = self._decode(self._context)
        return self._decode(self._context + self._held)[len(known) :]

    def _commit(self, text: str) -> str:
        text = text[self._shown :]
        self._context = (self._context + self._held)[-CONTEXT_TOKENS:]
        self._held, self._shown = [], 0
        return text
