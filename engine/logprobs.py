"""Log-probabilities of chosen tokens, of the model's own logits; computed on the device beside the choice itself."""

from __future__ import annotations

from typing import cast

import mlx.core as mx

from engine.request import TokenScore

Scored = tuple[mx.array, mx.array, mx.array]
"""For each row: the chosen token's log-probability, and the likeliest tokens with theirs."""


class Scores:
    """Collects the scores of one sequence's tokens until somebody takes them."""

    def __init__(self, top: int) -> None:
        """`top`: how many of the likeliest tokens are told beside the chosen one."""
        self._top = top
        self._kept: list[TokenScore] = []

    def score(self, logits: mx.array, chosen: mx.array) -> Scored:
        """Begin to score the tokens `chosen` [n] from `logits` [n, vocabulary]."""
        logits = logits.astype(mx.float32)
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        top = min(self._top, logits.shape[-1])
        likeliest = mx.argsort(-logprobs, axis=-1)[:, :top] if top else mx.zeros((logits.shape[0], 0), mx.uint32)
        own = mx.take_along_axis(logprobs, chosen[:, None], axis=-1)[:, 0]
        scored = own, likeliest, mx.take_along_axis(logprobs, likeliest, axis=-1)
        mx.async_eval(scored)  # type: ignore[no-untyped-call]
        return scored

    def keep(self, scored: Scored, tokens: list[int]) -> None:
        """`tokens`, those of the first rows scored, are part of the sequence."""
        own, likeliest, logprobs = (cast("list[list[int]]", part.tolist()) for part in scored)
        for row, token in enumerate(tokens):
            pairs = zip(likeliest[row], cast("list[list[float]]", logprobs)[row], strict=True)
            self._kept.append(TokenScore(token, cast("list[float]", own)[row], tuple(pairs)))

    def take(self) -> tuple[TokenScore, ...]:
        """What was kept since the last time."""
        kept, self._kept = tuple(self._kept), []
        return kept
