"""A small model of the same tokenizer guesses, greedily, with a KV cache of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx_lm.models.cache import make_prompt_cache

from engine.cache_states import copied
from engine.drafters import Draft, DraftMemory
from engine.rollback import rewind

CHUNK = 256
"""Tokens fed in one call while the draft model is behind: bounded, so that a long prompt does not hold up a cancel."""


@dataclass
class FedDraft:
    """A draft model's KV cache, which holds `tokens`."""

    cache: list[Any]
    tokens: list[int]

    @property
    def nbytes(self) -> int:
        return sum(layer.nbytes for layer in self.cache)

    def cut(self, length: int) -> None:
        length = min(length, len(self.tokens))
        rewind(self.cache, len(self.tokens), length)
        del self.tokens[length:]

    def copied(self, length: int) -> FedDraft:
        length = min(length, len(self.tokens))
        return FedDraft(copied(self.cache, length, None) if length else [], self.tokens[:length])


class DraftModelDrafter:
    """Follows the target lazily: nothing is fed to the draft model before a draft is asked for."""

    method = "draft"
    taps = None

    def __init__(self, model: Module, vocabulary: int, longest_context: int, longest: int = 15) -> None:
        """`vocabulary`: how many token ids the target knows; padding beyond them is never proposed."""
        self.longest = longest
        self._model = model
        self._vocabulary = vocabulary
        self._longest_context = longest_context
        self._cache: list[Any] = make_prompt_cache(model)
        self._known: list[int] = []
        self._fed: list[int] = []
        """What the cache holds: a beginning of the text, and perhaps drafted tokens that did not come true."""
        self._agreed = 0

    def recall(self, memory: DraftMemory | None) -> None:
        if isinstance(memory, FedDraft) and memory.tokens:
            self._cache, self._fed = memory.cache, memory.tokens
        self._agreed = 0

    def memory(self, length: int) -> FedDraft | None:
        fed = FedDraft(self._cache, self._fed)
        self._cache, self._fed, self._agreed = make_prompt_cache(self._model), [], 0
        fed.cut(length)
        return fed if fed.tokens else None

    def begin(self, tokens: list[int]) -> None:
        self._known = list(tokens)
        self._agreed = 0

    def extend(self, tokens: list[int]) -> None:
        self._known += tokens

    def propose(self, limit: int) -> Draft:
        """At most `limit` tokens; none while it is still catching up with the text."""
        if limit <= 0 or not self._known or len(self._known) + limit > self._longest_context:
            return Draft()
        self._forget_what_did_not_come()
        if len(self._known) - len(self._fed) > CHUNK:
            self._feed(CHUNK)
            return Draft()
        return Draft(tuple(self._drafted(limit)), self.method)

    def _forget_what_did_not_come(self) -> None:
        agreed, most = self._agreed, min(len(self._fed), len(self._known) - 1)
        while agreed < most and self._fed[agreed] == self._known[agreed]:
            agreed += 1
        self._agreed = min(agreed, most)
        rewind(self._cache, len(self._fed), self._agreed)
        del self._fed[self._agreed :]

    def _feed(self, count: int) -> None:
        chunk = self._known[len(self._fed) : len(self._fed) + count]
        self._model(mx.array([chunk]), cache=self._cache)
        mx.eval([layer.state for layer in self._cache])
        self._fed += chunk

    def _drafted(self, limit: int) -> list[int]:
        """Each token is launched on the one before it while that is still being computed; all are read at the end."""
        unfed = self._known[len(self._fed) :]
        inputs, drafted = mx.array(unfed), []
        for _ in range(limit):
            logits = self._model(inputs[None], cache=self._cache)[0, -1:, : self._vocabulary]
            inputs = mx.argmax(logits, axis=-1)
            mx.async_eval(inputs)  # type: ignore[no-untyped-call]
            drafted.append(inputs)
        tokens: list[int] = mx.concatenate(drafted).tolist()  # type: ignore[assignment]
        self._fed += unfed + tokens[:-1]
        return tokens
