"""One token at a time, one step ahead: the oracle that speculation is measured against, and the arm it starts from.

As mlx-lm's generate_step does, the next step is launched on the token still being computed, so the device never waits
for Python.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
from mlx.nn.layers.base import Module

from engine.cache_states import Mark
from engine.drafters import Draft
from engine.grammar import Matcher
from engine.logprobs import Scored, Scores
from engine.request import GenerationRequest
from engine.sampling import Chooser
from engine.taps import Taps

CLEAR_EVERY = 256
"""Tokens between two calls of clear_cache; mlx-lm's cadence."""


class Sequence:
    """One request on the model: its tokens, their KV cache, and how the next ones are chosen.

    `tokens` is the prompt and the output so far, `fed` how many of them the cache holds: all but the last where
    decoding begins, and between cycles. `taps` keeps the hidden states of what is fed from here on; `scores` the
    log-probabilities of the output, where they are asked for. `marks` are the positions that a cache which cannot be
    rewound can be brought back to.
    """

    def __init__(
        self,
        model: Module,
        cache: list[Any],
        chooser: Chooser,
        tokens: list[int],
        fed: int = 0,
        *,
        taps: Taps | None = None,
        marks: dict[int, Mark] | None = None,
        scores: Scores | None = None,
    ) -> None:
        self.model = model
        self.cache = cache
        self.chooser = chooser
        self.tokens = tokens
        self.fed = fed
        self.marks: dict[int, Mark] = marks if marks is not None else {}
        self.scores = scores
        self._taps = taps
        if taps is not None:
            taps.clear()

    def forward(self, inputs: mx.array) -> mx.array:
        """Feed `inputs` [n] after what the cache holds; returns logits [n, vocabulary]."""

        def run() -> mx.array:
            logits: mx.array = self.model(inputs[None], cache=self.cache)
            return logits[0]

        logits = run() if self._taps is None else self._taps.forward(run, self.fed)
        self.fed += inputs.size
        return logits

    def permitted(self, draft: Draft) -> Draft:
        """The beginning of a draft that the grammar, if there is one, allows to come next."""
        matcher = self.chooser.matcher
        if matcher is None or not draft.tokens:
            return draft
        matcher.follow(self.tokens)
        return Draft(draft.tokens[: matcher.permitted(draft.tokens)], draft.kind)

    def recent(self, extra: list[int]) -> mx.array:
        """What penalties and a grammar look at for the choice of len(extra) + 1 rows: tokens that end with `extra`."""
        seen = self.tokens[-self.chooser.looks_back :] if self.chooser.looks_back else []
        return mx.array(seen + extra, mx.uint32)


def sequence_for(
    request: GenerationRequest,
    model: Module,
    cache: list[Any],
    fed: int,
    *,
    taps: Taps | None = None,
    marks: dict[int, Mark] | None = None,
) -> Sequence:
    """What a request asks for, on a cache that holds `fed` tokens of its prompt."""
    matcher = Matcher(request.grammar, request.prompt, request.begun) if request.grammar else None
    scores = None if request.top_logprobs is None else Scores(request.top_logprobs)
    chooser = Chooser(request.sampling, matcher)
    return Sequence(model, cache, chooser, list(request.prompt), fed, taps=taps, marks=marks, scores=scores)


class Pipeline:
    """Plain decoding of one sequence, one step ahead of what has been read."""

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._pending: tuple[mx.array, Scored | None] | None = None
        self._before = sequence.recent([])

    @property
    def is_ahead(self) -> bool:
        """Whether a step is under way whose token has not been read."""
        return self._pending is not None

    def advance(self, *, launch_next: bool) -> int:
        """Read the next token and append it to the sequence, launching the step after it first if asked to."""
        sequence = self._sequence
        if self._pending is None:
            self._before = sequence.recent([])
            self._pending = self._launch(mx.array(sequence.tokens[-1:]), len(sequence.tokens))
        (pending, scored), self._pending = self._pending, None
        if launch_next:
            if sequence.chooser.looks_back:
                self._before = mx.concatenate([self._before, pending])[-sequence.chooser.looks_back :]
            self._pending = self._launch(pending, len(sequence.tokens) + 1)
        token = int(pending.item())  # type: ignore[arg-type]  # token ids are whole
        sequence.tokens.append(token)
        if sequence.scores is not None and scored is not None:
            sequence.scores.keep(scored, [token])
        return token

    def _launch(self, inputs: mx.array, position: int) -> tuple[mx.array, Scored | None]:
        sequence = self._sequence
        logits = sequence.forward(inputs)
        chosen = sequence.chooser(logits, position, self._before)
        mx.async_eval(chosen)  # type: ignore[no-untyped-call]
        return chosen, sequence.scores.score(logits, chosen) if sequence.scores else None
