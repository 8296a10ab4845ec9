"""Hidden states of chosen layers, kept as the model computes them anyway: what some drafters guess from.

A tapped layer gets a subclass of its own class whose call notes the output; mlx-lm's model stays as it is. Noting is a
reference to an array that exists already, so plain decoding pays one dictionary write a layer and step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.nn.layers.base import Module

COMPACT_EVERY = 64
"""Steps whose rows are joined into one array."""


class Taps:
    """The outputs of layers `layers` of one sequence at a time, by absolute position.

    Of at most `most` positions, the newest, and `sink` at the beginning; without a limit of all.
    """

    def __init__(self, model: Module, layers: list[int], *, most: int | None = None, sink: int = 0) -> None:
        blocks = _blocks(model)
        if not layers or not all(0 <= layer < len(blocks) for layer in layers):
            raise ValueError(f"layers {layers} are not among the model's {len(blocks)}")
        self.layers = list(layers)
        self._most = most
        self._sink = sink
        self._is_noting = False
        self._noted: dict[int, mx.array] = {}
        self._pieces: list[tuple[int, mx.array]] = []
        self._loose = 0
        for layer in layers:
            _tap(blocks[layer], self._note, layer)

    def forward(self, run: Callable[[], mx.array], start: int) -> mx.array:
        """`run` the model on tokens whose first is at `start`, keeping their states in place of any from there on."""
        result, states = self.observe(run)
        self._cut(start)
        self._pieces.append((start, mx.concatenate([layer[0] for layer in states], axis=-1)))
        self._loose += 1
        if self._loose >= COMPACT_EVERY:
            self._compact()
        return result

    def observe(self, run: Callable[[], mx.array]) -> tuple[mx.array, list[mx.array]]:
        """What `run` gives, and the outputs [B, n, width] of the layers meanwhile; nothing is kept."""
        self._is_noting = True
        try:
            result = run()
        finally:
            self._is_noting = False
        states = [self._noted[layer] for layer in self.layers]
        self._noted.clear()
        return result, states

    def clear(self, pieces: list[tuple[int, mx.array]] | None = None) -> None:
        """Another sequence begins, of which `pieces` are known."""
        self._pieces = list(pieces or ())
        self._loose = 0

    def joined(self) -> list[tuple[int, mx.array]]:
        """All that is kept, in as few pieces as can be."""
        if self._pieces:
            self._compact()
        return list(self._pieces)

    def pieces(self, start: int, end: int) -> list[tuple[int, mx.array]]:
        """(position, states [n, layers x width]) of runs of positions from `start` up to `end`, in order; what is not
        kept is left out."""
        found = []
        for begin, states in self._pieces:
            low, high = max(begin, start), min(begin + states.shape[0], end)
            if low < high:
                found.append((low, states[low - begin : high - begin]))
        return found

    def release(self, end: int) -> None:
        """States before `end` have been used and will not be asked for again."""
        while self._pieces and self._pieces[0][0] + self._pieces[0][1].shape[0] <= end:
            del self._pieces[0]

    @property
    def positions(self) -> int:
        """How many positions are kept."""
        return sum(states.shape[0] for _, states in self._pieces)

    def _note(self, layer: int, output: mx.array) -> None:
        if self._is_noting:
            self._noted[layer] = output

    def _cut(self, start: int) -> None:
        while self._pieces and self._pieces[-1][0] >= start:
            self._pieces.pop()
        if self._pieces:
            begin, states = self._pieces[-1]
            if begin + states.shape[0] > start:
                self._pieces[-1] = begin, states[: start - begin]

    def _compact(self) -> None:
        """Join runs that follow each other, and let go of what lies before the newest `most` positions."""
        self._loose = 0
        begin, states = self._pieces[-1]
        end = begin + states.shape[0]
        first = 0 if self._most is None else max(self._sink, end - self._most)
        joined: list[tuple[int, list[mx.array]]] = []
        for begin, states in [*self.pieces(0, min(self._sink, first)), *self.pieces(first, end)]:
            if joined and joined[-1][0] + sum(run.shape[0] for run in joined[-1][1]) == begin:
                joined[-1][1].append(states)
            else:
                joined.append((begin, [states]))
        self._pieces = [(begin, mx.concatenate(runs)) for begin, runs in joined]
        mx.async_eval([states for _, states in self._pieces])  # type: ignore[no-untyped-call]


def _blocks(model: Any) -> list[Module]:
    return list(model.layers)


def _tap(block: Module, note: Callable[[int, mx.array], None], layer: int) -> None:
    """Give this one layer a subclass of its class that notes what a call returns."""
    kind = type(block)
    kind = getattr(kind, "untapped", kind)

    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        output = kind.__call__(self, *arguments, **options)
        note(layer, output)
        return output

    block.__class__ = type(kind.__name__, (kind,), {"__call__": call, "untapped": kind})
