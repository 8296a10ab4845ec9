"""Log-probabilities in OpenAI's two shapes, that of chats and that of text completions. Pure.

A token that is no whole text is shown as `bytes:\\xe2\\x82`, as OpenAI's completions do.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine.openai_answers import Kind, Logprobs
from engine.request import TokenScore

BytesOf = Callable[[int], bytes]
CONTINUES, CONTINUED = 0b11000000, 0b10000000
"""A byte of UTF-8 with these leading bits goes on with a character."""
LOWEST = -9999.0
"""JSON has no minus infinity; OpenAI's own word for it."""


def chat_logprobs(scores: Sequence[TokenScore], bytes_of: BytesOf) -> dict[str, Any]:
    """`logprobs` of a chat's choice or chunk."""

    def entry(token: int, logprob: float) -> dict[str, Any]:
        spelled = bytes_of(token)
        return {"token": shown(spelled), "logprob": max(logprob, LOWEST), "bytes": list(spelled)}

    content = [
        {**entry(score.token, score.logprob), "top_logprobs": [entry(*pair) for pair in score.likeliest]}
        for score in scores
    ]
    return {"content": content, "refusal": None}


class CompletionLogprobs:
    """`logprobs` of a text completion, in one piece or in several: offsets count characters from its beginning."""

    def __init__(self, bytes_of: BytesOf) -> None:
        self._bytes_of = bytes_of
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._offset = 0

    def of(self, scores: Sequence[TokenScore]) -> dict[str, Any]:
        """Those of the next tokens. `top_logprobs` has the chosen token too, so it may be one longer than asked for."""
        offsets = []
        for score in scores:
            spelled = self._bytes_of(score.token)
            if spelled and spelled[0] & CONTINUES != CONTINUED:  # what was begun before stays broken
                self._offset += len(self._decoder.decode(b"", final=True))
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(spelled))
        return {
            "tokens": [shown(self._bytes_of(score.token)) for score in scores],
            "token_logprobs": [max(score.logprob, LOWEST) for score in scores],
            "top_logprobs": [self._likeliest(score) for score in scores],
            "text_offset": offsets,
        }

    def _likeliest(self, score: TokenScore) -> dict[str, float]:
        pairs = (*score.likeliest, (score.token, score.logprob))
        return {shown(self._bytes_of(token)): max(logprob, LOWEST) for token, logprob in pairs}


def shaper(kind: Kind, top: int | None, bytes_of: BytesOf) -> Callable[[Sequence[TokenScore]], Logprobs]:
    """What shapes the scores of one choice's tokens, called in their order; `top` None: they are not asked for."""
    if top is None:
        return lambda _: None
    return CompletionLogprobs(bytes_of).of if kind == "text" else partial(chat_logprobs, bytes_of=bytes_of)


def shown(spelled: bytes) -> str:
    """A token's bytes as JSON can hold them."""
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelled)
