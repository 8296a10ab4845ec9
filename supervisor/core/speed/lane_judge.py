"""The judge of one lane: how fast its worker writes decides; how fast it reads is judged apart, and named.

Both are judged by the same classes, each with a baseline and noise of its own. Only runs with a nonce tell how fast a
prompt is read, and those come rarely; when one finds the reading slow, the runs that look closer have a nonce too, and
say nothing of the writing. A worker that reads slowly and writes well stays: the verdict says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from supervisor.core.samples import NO_VERDICT, Purpose, Sample, Status, Verdict
from supervisor.core.speed.ageing import Ageing
from supervisor.core.speed.cadence import RARE_EVERY
from supervisor.core.speed.judge import Cure
from supervisor.core.speed.speed_judge import SpeedJudge
from supervisor.core.terms import LaneTerms


class LaneJudge:
    """See above. Implements ``judge.Judge``."""

    def __init__(self, terms: LaneTerms) -> None:
        self._terms = terms
        self.writing = SpeedJudge.new(terms)
        self.reading = SpeedJudge.new(of_reading(terms), is_filled=False)
        self._ageing = Ageing(terms.canary.every_s)
        self._verdict = NO_VERDICT

    @property
    def terms(self) -> LaneTerms:
        """May be set anew at any time."""
        return self._terms

    @terms.setter
    def terms(self, terms: LaneTerms) -> None:
        self._take_up(terms)

    def _take_up(self, terms: LaneTerms) -> None:
        if terms.canary.every_s != self._terms.canary.every_s:
            self._ageing = Ageing(terms.canary.every_s)
        self._terms = self.writing.terms = terms
        self.reading.terms = of_reading(terms)

    # ---- what it knows ----

    @property
    def verdict(self) -> Verdict:
        """The last one: of the writing, with what the reading has to add."""
        return self._verdict

    @property
    def ageing(self) -> Ageing:
        """How the lane's workers age, by their writing."""
        return self._ageing

    @property
    def fresh_tok_s(self) -> float | None:
        """Decode rate of a fresh worker at the smallest prompt size, tokens/s."""
        return self.writing.fresh_tok_s

    @property
    def is_baseline_full(self) -> bool:
        """Whether enough fresh runs of enough spawns are in to trust a mild slowdown."""
        return self.writing.is_baseline_full

    @property
    def is_reading_known(self) -> bool:
        """The same of reading."""
        return self.reading.is_baseline_full

    @property
    def may_be_slow_spawn(self) -> bool:
        """Whether the worker's first runs look as if it came up slow."""
        return self.writing.may_be_slow_spawn

    @property
    def is_slow_spawn(self) -> bool:
        """Whether enough first runs of the worker say that it came up slow."""
        return self.writing.is_slow_spawn

    def by_model(self) -> dict[str, tuple[Verdict, dict[str, Any]]]:
        """It knows one model."""
        return {}

    def baseline_summary(self) -> dict[str, Any]:
        """What fresh means; ``prefill`` is the same of reading, in prompt tokens/s."""
        reading = self.reading.baseline_summary()
        reading["tok_s"] = reading.pop("decode_tok_s")
        return {**self.writing.baseline_summary(), "prefill": reading, "ageing": self._ageing.summary()}

    # ---- taking runs in ----

    def worker_replaced(self, generation: int) -> None:
        """Judge another worker, by its own runs."""
        self._ageing.life_ended(is_slow=self.verdict.status is Status.DEGRADED)
        self.writing.worker_replaced(generation)
        self.reading.worker_replaced(generation)
        self._verdict = self.writing.verdict

    def accept_spawn(self) -> None:
        """It came up slow, and so did others: it is held to its own first runs."""
        self.writing.accept_spawn()

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing."""
        is_closer_look = sample.purpose is Purpose.BURST and self._looks_at_reading
        if not is_closer_look:
            self.writing.observe(sample)
            self._see_ageing(sample)
        if sample.is_clean:
            reading = _reading_of(sample) or (self._too_fast_to_tell(sample) if is_closer_look else None)
            if reading:
                self.reading.observe(reading)
        self._verdict = self._put_together()
        return self._verdict

    def _see_ageing(self, sample: Sample) -> None:
        fresh = self.writing.reference(sample.prompt_tokens)
        if self._terms.recycle.learns and sample.is_clean and sample.decode_tok_s is not None and fresh is not None:
            self._ageing.measured(sample.worker_age_s, sample.decode_tok_s / fresh.tok_s)

    @property
    def _looks_at_reading(self) -> bool:
        return self.reading.wants_runs > 0 and not self.writing.wants_runs

    def _too_fast_to_tell(self, sample: Sample) -> Sample | None:
        """A prompt that was read in no time was not read slowly."""
        reference = self.reading.reference(sample.prompt_tokens)
        return replace(sample, decode_tok_s=reference.tok_s, host_slowness=0.0) if reference else None

    def _put_together(self) -> Verdict:
        verdict, reading = self.writing.verdict, self.reading.verdict
        if reading.status is Status.UNKNOWN:
            return verdict
        verdict = replace(verdict, prefill=reading)
        if reading.status is Status.DEGRADED:
            verdict = replace(verdict, reason=f"{verdict.reason}; prefill is slow: {reading.reason}")
        if verdict.wants_runs or verdict.wants_size is not None or reading.status is Status.DEGRADED:
            return verdict
        is_in_doubt = reading.status is Status.SUSPECT or reading.wants_runs > 0
        return replace(
            verdict,
            wants_runs=reading.wants_runs,
            wants_size=reading.wants_size if is_in_doubt else None,
            wants_soon=verdict.wants_soon or reading.wants_soon,
            wants_nonce=is_in_doubt,
        )

    # ---- what a recycle brought ----

    def compare(self, before: Verdict | None, after: Mapping[int, Sequence[float]]) -> Cure:
        """What a recycle for slowness brought."""
        return self.writing.compare(before, after)

    def anchor_anew(self, rates: Sequence[float], model: str = "") -> str:  # noqa: ARG002 - it knows one model
        """The machine, not the process, has changed. How fast a prompt is read there is learned anew."""
        said = self.writing.anchor_anew(rates)
        if said:
            self.reading.reset()
        return said

    # ---- outliving the daemon ----

    def reset(self) -> None:
        """Forget what fresh means."""
        self.writing.reset()
        self.reading.reset()
        self._ageing = Ageing(self._terms.canary.every_s)
        self._verdict = self.writing.verdict

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {**self.writing.to_json(), "prefill": self.reading.to_json(), "ageing": self._ageing.to_json()}

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave."""
        self.writing.restore(document)
        reading = document.get("prefill")
        self.reading.restore(reading if isinstance(reading, Mapping) else {})
        self._ageing = Ageing.from_json(document.get("ageing"), self._terms.canary.every_s)


def of_reading(terms: LaneTerms) -> LaneTerms:
    """The terms of a judge of reading: runs that tell of reading are so much rarer."""
    return replace(terms, canary=replace(terms.canary, every_s=RARE_EVERY * terms.canary.every_s))


def _reading_of(sample: Sample) -> Sample | None:
    """The run as one of reading: its rate is the prompt's tokens/s."""
    rate = sample.prefill_tok_s
    return None if rate is None else replace(sample, decode_tok_s=rate, tokens_per_step=None)
