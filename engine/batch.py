"""Several requests decoded together: one step of the model gives a token to each.

mlx-lm's BatchGenerator does the steps. A row joins with a prompt that was fed before, one chunk between two steps, so
that a long prompt never stops the others for longer; it leaves without the others noticing. There is no drafting here:
a batch already uses the width of the device that a draft would.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx_lm.generate import BatchGenerator
from mlx_lm.models.cache import make_prompt_cache

from engine.drafters import DraftMemory
from engine.errors import DecodeError, grammar_error
from engine.job import Job, finish_of
from engine.plain import CLEAR_EVERY, Sequence, sequence_for
from engine.prefill import Prefill
from engine.prefixes import Prefixes
from engine.request import Fed, TokenBatch, TokenScore, Usage
from engine.tally import Tally

MOST_ROWS = 16
"""Beyond these, requests wait: the KV caches of all rows are padded to the longest."""


class Row:
    """One job in the batch."""

    def __init__(
        self,
        job: Job,
        sequence: Sequence,
        room: int,
        feed: Iterator[Fed],
        memory: DraftMemory | None = None,
    ) -> None:
        """`memory`: what a drafter knew of the beginning, for when the row is decoded alone again."""
        self.memory = memory
        self.job = job
        self.sequence = sequence
        self.room = room
        self.feed = feed
        self.usage = Usage(prompt_tokens=len(sequence.tokens), cached_tokens=sequence.fed)
        self._position = len(sequence.tokens)
        self._unscored: deque[mx.array] = deque()

    @property
    def is_ordinary(self) -> bool:
        """Whether all that is asked of its logits is which is the highest."""
        return self.sequence.chooser.is_greedy and not self.sees_logits

    @property
    def sees_logits(self) -> bool:
        """Whether its logits are changed or scored before a token is picked."""
        return self.sequence.chooser.changes_logits or self.sequence.scores is not None

    @property
    def fault(self) -> str:
        """Why it cannot go on after its next token; empty if it can."""
        matcher = self.sequence.chooser.matcher
        return matcher.fault if matcher else ""

    def change(self, context: mx.array, logits: mx.array) -> mx.array:
        """What the next token is picked from [1, vocabulary]; `context` ends with the token that it follows."""
        if self.sequence.scores is not None:
            self._unscored.append(logits[:])  # penalties are written into the array itself
        return self.sequence.chooser.changed(logits, self._position, context)

    def pick(self, logprobs: mx.array) -> mx.array:
        """The row's next token [1], by its own seed and position."""
        self._position += 1
        return self.sequence.chooser.picked(logprobs, self._position - 1)

    def score(self, token: int) -> tuple[TokenScore, ...]:
        """The score of the token that was picked, where scores are asked for."""
        scores = self.sequence.scores
        if scores is None:
            return ()
        scores.keep(scores.score(self._unscored.popleft(), mx.array([token])), [token])
        return scores.take()

    def add(self, **amounts: float) -> None:
        """Count costs of this stretch."""
        self.usage = self.usage.plus(**amounts)


class Batch:
    """Rows that decode, and rows whose prompts are still being fed, in the order in which they came."""

    def __init__(self, model: Module, prefixes: Prefixes, prefill: Prefill, tally: Tally, context_length: int) -> None:
        self._model = model
        self._prefixes = prefixes
        self._prefill = prefill
        self._tally = tally
        self._context_length = context_length
        self._generator = self._new_generator()
        self._rows: dict[int, Row] = {}
        self._joining: deque[Row] = deque()
        self._steps = 0

    def __len__(self) -> int:
        return len(self._rows) + len(self._joining)

    @property
    def most_rows(self) -> int:
        """How many it takes at once."""
        return MOST_ROWS

    @property
    def jobs(self) -> list[Job]:
        """All that are in it."""
        return [row.job for row in (*self._rows.values(), *self._joining)]

    @property
    def is_settled(self) -> bool:
        """Whether no prompt is being fed."""
        return not self._joining

    def join(self, job: Job) -> None:
        """Take a job in; its prompt is fed in the steps that follow."""
        tokens = list(job.request.prompt)
        found = self._prefixes.take(tokens, is_shared=job.request.is_choice)
        cached = found.length
        sequence = sequence_for(job.request, self._model, found.cache or make_prompt_cache(self._model), cached)
        room = min(job.request.max_tokens, self._context_length - len(tokens))
        if not job.is_begun and not job.request.is_choice:
            self._tally.count_request(len(tokens), cached)
        self._joining.append(Row(job, sequence, room, self._prefill.feed(sequence), found.memory))

    def step(self) -> Iterator[tuple[Job, TokenBatch | DecodeError, Usage]]:
        """Feed one chunk of a prompt, then decode one token of each row; a row that ends has left when this says so.

        A row that cannot go on ends with an error.
        """
        if self._joining:
            yield self._feed(self._joining[0])
        if not self._rows:
            return
        began = time.monotonic()
        _, responses = self._generator.next()  # type: ignore[no-untyped-call]
        seconds = time.monotonic() - began
        self._tally.count_batch(len(responses), seconds)
        self._steps += 1
        if self._steps % CLEAR_EVERY == 0:
            mx.clear_cache()
        for response in responses:
            row = self._rows[response.uid]
            row.room -= 1
            row.add(completion_tokens=1, decode_s=seconds)
            row.sequence.tokens.append(response.token)
            finish = finish_of(response.token, row.room, row.job.request.stop_tokens)
            if finish or row.fault:
                self._remove(response.uid)
            yield row.job, TokenBatch((response.token,), finish, scores=row.score(response.token)), row.usage
            if row.fault and not finish:
                yield row.job, grammar_error(row.fault), row.usage

    def leave(self, job: Job) -> None:
        """Take a job out; its KV cache stays with the prefixes."""
        for uid, row in self._rows.items():
            if row.job is job:
                self._remove(uid)
                return
        for row in self._joining:
            if row.job is job:
                self._joining.remove(row)
                sequence = row.sequence
                self._prefixes.keep(sequence.tokens, sequence.fed, sequence.cache, memory=row.memory)
                return

    def abandon(self) -> None:
        """After a fault nobody knows what the caches hold: drop all rows."""
        self._rows.clear()
        self._joining.clear()
        self._generator = self._new_generator()

    def _feed(self, row: Row) -> tuple[Job, TokenBatch, Usage]:
        fed = next(row.feed, None)
        if fed is None:
            self._joining.popleft()
            if row.room <= 0:
                self._prefixes.keep(row.sequence.tokens, row.sequence.fed, row.sequence.cache, memory=row.memory)
                return row.job, TokenBatch((), "length"), row.usage
            self._insert(row)
        else:
            row.add(**self._tally.count_fed(fed))
        return row.job, TokenBatch(()), row.usage

    def _insert(self, row: Row) -> None:
        sequence = row.sequence
        [uid] = self._generator.insert(
            [[sequence.tokens[-1]]],
            max_tokens=[self._context_length],
            caches=[sequence.cache],
            all_tokens=[sequence.tokens[:-1]],
            samplers=[greedy if row.is_ordinary else row.pick],
            logits_processors=[[row.change] if row.sees_logits else []],
        )
        self._rows[uid] = row

    def _remove(self, uid: int) -> None:
        memory = self._rows.pop(uid).memory
        kept = self._generator.remove([uid], return_prompt_caches=True)  # type: ignore[no-untyped-call]
        cache, tokens = kept[uid]
        self._prefixes.keep(tokens, len(tokens), cache, memory=memory)

    def _new_generator(self) -> BatchGenerator:
        return BatchGenerator(
            self._model,
            sampler=greedy,
            completion_batch_size=MOST_ROWS,
            prefill_batch_size=MOST_ROWS,
            stream=mx.default_stream(mx.default_device()),
        )


def greedy(logprobs: mx.array) -> mx.array:
    """The likeliest token of each row [n, vocabulary]; one function, so that one call serves all greedy rows."""
    return mx.argmax(logprobs, axis=-1)
