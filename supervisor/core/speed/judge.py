"""The seam between a lane and whatever judges its speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from supervisor.core.samples import Sample, Verdict
from supervisor.core.speed.ageing import Ageing
from supervisor.core.terms import LaneTerms

Cure = Literal["cured", "partial", "futile"]
"""What a replacement for slowness came to; words of ``record.Outcome``."""


class Judge(Protocol):
    """Says of each worker, run by run, whether it is still as fast as a fresh one of its lane.

    It has no clock and does no I/O; time comes with the samples.
    """

    terms: LaneTerms
    """May be set anew at any time; the next run is judged by them."""

    @property
    def verdict(self) -> Verdict:
        """The last one; ``UNKNOWN`` until the worker has been measured."""

    @property
    def fresh_tok_s(self) -> float | None:
        """Decode rate of a fresh worker at the smallest prompt size, tokens/s; None while too few runs tell."""

    @property
    def ageing(self) -> Ageing:
        """What is learned of how the lane's workers age."""

    @property
    def is_baseline_full(self) -> bool:
        """Whether enough fresh runs of enough spawns are in to trust a mild slowdown."""

    @property
    def is_reading_known(self) -> bool:
        """The same of how fast a fresh worker reads prompts."""

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing."""

    def worker_replaced(self, generation: int) -> None:
        """Another worker is measured from now on: it is judged by its own runs, and its fresh ones add to the
        baseline.
        """

    @property
    def may_be_slow_spawn(self) -> bool:
        """Whether the worker's first runs look as if it came up slow; a few more will tell."""

    @property
    def is_slow_spawn(self) -> bool:
        """Whether enough first runs of the worker say that it came up slow."""

    def accept_spawn(self) -> None:
        """It came up slow, and so did others: it is the best to be had, and held to its own first runs."""

    def compare(self, before: Verdict | None, after: Mapping[int, Sequence[float]]) -> Cure:
        """What a recycle for slowness brought: the old worker's verdict against the new one's rates (tokens/s) by
        prompt size, of which there is at least the smallest.
        """

    def anchor_anew(self, rates: Sequence[float], model: str = "") -> str:
        """The machine, not the process, has changed: fresh means from now on what a new worker has at the smallest
        size, in tokens/s; of ``model``, a key of `serves`, or of the lane's own.

        Returns what was done, in words; empty where that cannot be told.
        """

    def by_model(self) -> dict[str, tuple[Verdict, dict[str, Any]]]:
        """Verdict and baseline of each further model that the worker serves, by the key of `serves`."""

    def baseline_summary(self) -> dict[str, Any]:
        """What fresh means: {decode_tok_s, by_prompt_tokens, spawns, runs, quality}."""

    def reset(self) -> None:
        """Forget what fresh means."""

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon, as JSON values; kept under the fingerprint of what the lane runs."""

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave; anything that cannot be read is left out."""
