"""The seam between a lane and whatever judges its speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from supervisor.core.samples import Sample, Verdict
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
    def is_baseline_full(self) -> bool:
        """Whether enough fresh runs of enough spawns are in to trust a mild slowdown."""

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing."""

    def worker_replaced(self, generation: int) -> None:
        """Another worker is measured from now on: it is judged by its own runs, and its fresh ones add to the
        baseline.
        """

    def compare(self, before_rates: Sequence[float], after_rates: Sequence[float]) -> Cure:
        """What a recycle for slowness brought, from rates (tokens/s) of the old and the new worker.

        Raises:
            ValueError: ``after_rates`` is empty.
        """

    def baseline_summary(self) -> dict[str, Any]:
        """What fresh means: {decode_tok_s, by_prompt_tokens, spawns, runs, quality}."""

    def reset(self) -> None:
        """Forget what fresh means."""

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon, as JSON values; kept under the fingerprint of what the lane runs."""

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave; anything that cannot be read is left out."""
