"""Choosing tokens from logits, as a function of the request's seed and the token's position alone.

Each position has its own randomness. So the token chosen at a position is the same whether its logits come from a plain
step or as one row of a verification, and comparing a draft with the tokens chosen here is exact rejection sampling: a
drafted x is kept with probability p(x), and what replaces it is distributed as p without x.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import cast

import mlx.core as mx
from mlx_lm.sample_utils import LogitsProcessor, apply_min_p, apply_top_k, apply_top_p, make_logits_processors

from engine.grammar import Matcher
from engine.request import Sampling

PENALTY_CONTEXT = 20
"""How far presence and frequency penalties look back; mlx-lm's default."""


class Chooser:
    """Chooses the tokens of one request, among those that its grammar allows, if it has one."""

    def __init__(self, sampling: Sampling, matcher: Matcher | None = None) -> None:
        self.matcher = matcher
        self._sampling = sampling
        self._seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        self._processors = _processors(sampling)
        self.looks_back = max(
            sampling.repetition_context_size if sampling.repetition_penalty != 1 else 0,
            PENALTY_CONTEXT if sampling.presence_penalty or sampling.frequency_penalty else 0,
            1 if matcher else 0,
        )
        """How many tokens before a choice its penalties and its grammar need to see."""

    def __call__(self, logits: mx.array, position: int, before: mx.array) -> mx.array:
        """Choose one token a row.

        `logits` [n, vocabulary]: row i is for the token at `position + i`. `before` [m]: the last tokens known or
        drafted, ending with the input of the last row; as many as `looks_back` for row 0. Returns [n].
        """
        rows = logits.shape[0]
        if self._processors:
            logits = mx.concatenate(
                [self._penalised(logits[row : row + 1], before[: before.size - rows + 1 + row]) for row in range(rows)]
            )
        if self.matcher:
            logits = _masked(self.matcher, logits, position, before[before.size - rows :])
        return self.picked(logits, position)

    @property
    def changes_logits(self) -> bool:
        """Whether logits are changed before a token is picked: by penalties, biases or a grammar."""
        return bool(self._processors or self.matcher)

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest token is picked, whatever the seed and the position."""
        return self._sampling.temperature == 0

    def changed(self, row: mx.array, position: int, before: mx.array) -> mx.array:
        """The logits [1, vocabulary] that a token is picked from; `before` [m] ends with the row's input."""
        row = self._penalised(row, before)
        return _masked(self.matcher, row, position, before[-1:]) if self.matcher else row

    def _penalised(self, row: mx.array, before: mx.array) -> mx.array:
        for processor in self._processors:
            row = processor(before, row)
        return row

    def picked(self, logits: mx.array, position: int) -> mx.array:
        """One token a row, of logits or log-probabilities [n, vocabulary] whose first row is for `position`."""
        if self.is_greedy:
            return mx.argmax(logits, axis=-1)
        scaled = self._filter(logits) * (1 / self._sampling.temperature)
        rows = range(logits.shape[0])
        noise = [mx.random.gumbel(logits.shape[1:], key=self._key(position + row)) for row in rows]
        return mx.argmax(scaled + mx.stack(noise), axis=-1)

    def _filter(self, logits: mx.array) -> mx.array:
        sampling = self._sampling
        logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
        if 0 < sampling.top_p < 1:
            logprobs = apply_top_p(logprobs, sampling.top_p)
        if sampling.min_p > 0:
            logprobs = apply_min_p(logprobs, sampling.min_p)
        if 0 < sampling.top_k < logprobs.shape[-1]:
            logprobs = apply_top_k(logprobs, sampling.top_k)
        return logprobs

    def _key(self, position: int) -> mx.array:
        digest = hashlib.blake2b(f"{self._seed}:{position}".encode(), digest_size=8).digest()
        return mx.random.key(int.from_bytes(digest, "little"))


def _masked(matcher: Matcher, logits: mx.array, position: int, inputs: mx.array) -> mx.array:
    """The logits of what the grammar forbids after each of `inputs` become minus infinity."""
    mx.async_eval(logits)  # type: ignore[no-untyped-call]  # the device goes on while the grammar is followed
    allowed = matcher.masks(cast("list[int]", inputs.tolist()), position)
    mask = mx.zeros(logits.shape, mx.bool_)
    mask[:, : allowed.shape[1]] = mx.array(allowed[:, : logits.shape[1]])
    return mx.where(mask, logits, -mx.inf)


def _processors(sampling: Sampling) -> list[LogitsProcessor]:
    return make_logits_processors(
        logit_bias=dict(sampling.logit_bias) or None,
        repetition_penalty=None if sampling.repetition_penalty == 1 else sampling.repetition_penalty,
        repetition_context_size=sampling.repetition_context_size,
        presence_penalty=sampling.presence_penalty or None,
        presence_context_size=PENALTY_CONTEXT,
        frequency_penalty=sampling.frequency_penalty or None,
        frequency_context_size=PENALTY_CONTEXT,
    )
