"""The judge of a lane whose worker serves several models: each is judged apart, and the worst off is the verdict.

The lane's own model is judged as in any lane. Each further one (a key of `serves`) has a baseline, noise and evidence
of its own, at the smallest prompt size alone. The worker is one, so what is wrong with one model is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from supervisor.core.samples import Sample, Status, Verdict, Void
from supervisor.core.speed.judge import Cure
from supervisor.core.speed.lane_judge import LaneJudge
from supervisor.core.speed.speed_judge import SpeedJudge
from supervisor.core.terms import LaneTerms


class ModelsJudge(LaneJudge):
    """See above. Without further models it is a ``LaneJudge``."""

    def __init__(self, terms: LaneTerms) -> None:
        super().__init__(_of_own(terms))
        self.others = {name: SpeedJudge.new(_of_other(terms)) for name in terms.canary.models}
        """By the key of `serves`."""

    @property
    def terms(self) -> LaneTerms:
        """May be set anew at any time, with other models too."""
        return self._terms

    @terms.setter
    def terms(self, terms: LaneTerms) -> None:
        self._take_up(_of_own(terms))
        self.others = {name: self.others.get(name) or SpeedJudge.new(_of_other(terms)) for name in terms.canary.models}
        for judge in self.others.values():
            judge.terms = _of_other(terms)

    @property
    def verdict(self) -> Verdict:
        """Of the model that is worst off, of the lane's own while none is; what is wanted next may be another's."""
        own = self._verdict
        if not self.others:
            return own
        found = sorted((own, *map(self._verdict_of, self.others)), key=_badness, reverse=True)
        asking = next((verdict for verdict in found if verdict.wants_runs), own)
        return replace(
            found[0],
            wants_runs=asking.wants_runs,
            wants_model=asking.model,
            wants_size=own.wants_size,
            wants_nonce=own.wants_nonce,
            wants_soon=any(verdict.wants_soon for verdict in found),
        )

    def by_model(self) -> dict[str, tuple[Verdict, dict[str, Any]]]:
        """Verdict and baseline of each further model."""
        return {name: (self._verdict_of(name), judge.baseline_summary()) for name, judge in self.others.items()}

    def _verdict_of(self, name: str) -> Verdict:
        verdict = self.others[name].verdict
        return replace(verdict, model=name, reason=f"{name}: {verdict.reason}")

    def worker_replaced(self, generation: int) -> None:
        """Judge another worker, by its own runs."""
        super().worker_replaced(generation)
        for judge in self.others.values():
            judge.worker_replaced(generation)

    def observe(self, sample: Sample) -> Verdict:
        """Take one run in; a void one changes nothing. A slow host is slow for all models."""
        if sample.void is Void.HOST_SLOW or not sample.model:
            super().observe(sample)
        for name, judge in self.others.items():
            if sample.void is Void.HOST_SLOW or sample.model == name:
                judge.observe(sample)
        return self.verdict

    def compare(self, before: Verdict | None, after: Mapping[int, Sequence[float]]) -> Cure:
        """What a recycle for slowness brought, to the model that was slow."""
        other = self.others.get(before.model) if before else None
        return other.compare(before, after) if other else super().compare(before, after)

    def anchor_anew(self, rates: Sequence[float], model: str = "") -> str:
        """The machine, not the process, has changed."""
        other = self.others.get(model)
        if other is None:
            return super().anchor_anew(rates)
        said = other.anchor_anew(rates)
        return f"{model}: {said}" if said else ""

    def reset(self) -> None:
        """Forget what fresh means."""
        super().reset()
        for judge in self.others.values():
            judge.reset()

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        others = {name: judge.to_json() for name, judge in self.others.items()}
        return {**super().to_json(), "models": others} if others else super().to_json()

    def restore(self, document: Mapping[str, Any]) -> None:
        """Take up what ``to_json`` gave."""
        super().restore(document)
        kept = document.get("models")
        for name, judge in self.others.items():
            of_model = kept.get(name) if isinstance(kept, Mapping) else None
            judge.restore(of_model if isinstance(of_model, Mapping) else {})


def _badness(verdict: Verdict) -> int:
    return {Status.DEGRADED: 2, Status.SUSPECT: 1}.get(verdict.status, 0)


def _of_own(terms: LaneTerms) -> LaneTerms:
    """What bursts may cost is for all models together."""
    share = terms.canary.burst_budget / (1 + len(terms.canary.models))
    return replace(terms, canary=replace(terms.canary, burst_budget=share)) if terms.canary.models else terms


def _of_other(terms: LaneTerms) -> LaneTerms:
    canary = _of_own(terms).canary
    return replace(terms, canary=replace(canary, prompt_tokens=(min(canary.prompt_tokens),)))
