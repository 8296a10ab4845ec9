"""Why a worker is slow, decided before anything is done about it, from evidence with numbers.

``Life`` gathers what the shell reads of worker and machine while the worker lives; ``cause_of`` walks the tree: steps
that give less, a worker slow from its first run, memory, the host, and last the process itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from supervisor.core.account.record import Cause, CauseKind
from supervisor.core.samples import Sample, Status, Verdict
from supervisor.core.speed.own_words import OwnWords
from supervisor.core.speed.step_yield import is_only_slow_with_speculation, is_the_reason
from supervisor.core.terms import Trigger
from supervisor.core.words import share

MIB = 2**20
GB = 1_000_000_000

SWAP_GREW_BYTES = 256 * MIB
"""More than this went to swap since the worker was fresh."""

FOOTPRINT_GREW = 1.5
FOOTPRINT_GREW_BYTES = 256 * MIB
"""A worker's memory has grown if it is larger than when it was fresh by both."""

MACHINE_GREW_SHARE = 0.05
"""Compressed or wired memory grew if by more than this share of the machine's memory."""

UNSTRAINED = frozenset({None, "nominal"})
UNPRESSED = frozenset({None, "normal"})

HOST_SLOW = 0.10
"""Log slowness of the host that says more than chance."""

SLOW_FROM_BIRTH = 0.85
"""A worker whose first judged run lay under this share of fresh has not aged."""

BESIDE_A_GOOD_CANARY = frozenset({CauseKind.CONTEXT, CauseKind.PREFILL})
"""What a person may find slow where the worker writes as fast as ever: no reason for the lane itself to recycle."""

RUNS = 5
"""The last runs, over which the host's slowness is averaged."""


@dataclass(frozen=True, slots=True)
class HostReading:
    """The machine at one moment. None: it does not tell."""

    total_bytes: int = 0
    available_bytes: int = 0
    swap_used_bytes: int = 0
    compressed_bytes: int | None = None
    wired_bytes: int | None = None
    pressure: str | None = None
    """Of memory: ``normal``, ``warning`` or ``critical``."""
    heat: str | None = None
    is_low_power: bool | None = None


NO_READING = HostReading()
SILENT = OwnWords()


@dataclass(frozen=True, slots=True)
class Reading:
    """Worker and machine at one moment; ``memory_bytes`` is the worker's footprint."""

    memory_bytes: int
    host: HostReading


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything the tree asks for."""

    verdict: Verdict | None = None
    fresh: Reading | None = None
    """When the first run of this worker was judged."""
    now: Reading | None = None
    first_ratio: float | None = None
    """To the baseline, of the worker's first judged run."""
    host_slowness: float = 0.0
    said: OwnWords = SILENT
    """What the worker says of itself."""
    context: str | None = None
    """That clients' streams are slow for the length of their context, in words."""


class Life:
    """What was read of one worker since it began."""

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, generation: int) -> None:
        self._generation = generation
        self._fresh: Reading | None = None
        self._now: Reading | None = None
        self._first_ratio: float | None = None
        self._host: deque[float] = deque(maxlen=RUNS)
        self._said = SILENT
        self._context: str | None = None

    def read(self, generation: int, reading: Reading, said: OwnWords | None = None) -> None:
        """New readings of this worker and of the machine, and what the worker ``said`` of itself."""
        if generation != self._generation:
            self._begin(generation)
        self._now, self._said = reading, said or SILENT

    def ran(self, sample: Sample, verdict: Verdict, context: str | None = None) -> None:
        """A clean run of this worker was judged; ``context``: what clients' streams say beside it."""
        if sample.generation != self._generation:
            self._begin(sample.generation)
        self._context = context
        self._host.append(sample.host_slowness)
        if verdict.ratio is not None and verdict.status is not Status.UNKNOWN:
            self._first_ratio = verdict.ratio if self._first_ratio is None else self._first_ratio
            self._fresh = self._fresh or self._now

    def said_by(self, generation: int) -> OwnWords:
        """What this worker has said of itself."""
        return self._said if generation == self._generation else SILENT

    def evidence(self, verdict: Verdict | None) -> Evidence:
        """What is known by now."""
        return Evidence(
            verdict=verdict,
            fresh=self._fresh,
            now=self._now,
            first_ratio=self._first_ratio,
            host_slowness=fmean(self._host) if self._host else 0.0,
            said=self._said,
            context=self._context,
        )


# ---- the tree ----


ITS_OWN = {Trigger.HUNG: CauseKind.HANG, Trigger.CRASHED: CauseKind.CRASH, Trigger.BAD_SPAWN: CauseKind.BAD_SPAWN}
"""Triggers that are a cause by themselves."""


def cause_of(trigger: Trigger, evidence: Evidence, reason: str) -> Cause:
    """Why the worker has to go: by what set it off, and for slowness by the evidence."""
    match trigger:
        case Trigger.DEGRADED:
            return of_slowness(evidence)
        case Trigger.MEMORY:
            return Cause(CauseKind.MEMORY_PRESSURE, (reason, *memory_signs(evidence)))
        case trigger if trigger in ITS_OWN:
            return Cause(ITS_OWN[trigger], (reason,))
        case Trigger.OPERATOR if (beside := of_slowness(evidence)).kind in BESIDE_A_GOOD_CANARY:
            return Cause(beside.kind, (reason, *beside.evidence))
        case _:
            return Cause(CauseKind.NONE, (reason,) if reason else ())


def of_slowness(evidence: Evidence) -> Cause:
    """Why the canary is slow; where it is not, what else is."""
    verdict = evidence.verdict
    if verdict is None or verdict.ratio is None:
        return Cause()
    if verdict.status is Status.HEALTHY:
        return _beside_a_good_canary(evidence, verdict)
    kind, signs = _of_a_slow_canary(evidence, verdict)
    return Cause(kind, (verdict.reason, *signs, *evidence.said.sentences))


def _of_a_slow_canary(evidence: Evidence, verdict: Verdict) -> tuple[CauseKind, tuple[str, ...]]:
    steps = _steps(verdict) + _plainly(verdict)
    is_barren = is_the_reason(verdict.tokens_per_step or evidence.said.tokens_per_step, verdict.ratio)
    if is_barren or is_only_slow_with_speculation(verdict.plain_tok_s, verdict.ratio):
        return CauseKind.ACCEPTANCE, steps
    if evidence.first_ratio is not None and evidence.first_ratio < SLOW_FROM_BIRTH:
        born = f"its first judged run was at {share(evidence.first_ratio)} of a fresh worker's rate"
        return CauseKind.BAD_SPAWN, (born,)
    signs = tuple(memory_signs(evidence))
    if signs:
        return CauseKind.MEMORY_PRESSURE, signs
    strains = tuple(_strains(evidence))
    if strains:
        return CauseKind.HOST_SLOW, strains
    return CauseKind.WORKER_AGED, steps or _token_time(verdict)


def _beside_a_good_canary(evidence: Evidence, verdict: Verdict) -> Cause:
    if evidence.context:
        return Cause(CauseKind.CONTEXT, (verdict.reason, evidence.context))
    reading = verdict.prefill
    if reading is not None and reading.status is Status.DEGRADED:
        return Cause(CauseKind.PREFILL, (verdict.reason, f"prompts are read slowly: {reading.reason}"))
    return Cause()


def _steps(verdict: Verdict) -> tuple[str, ...]:
    if verdict.tokens_per_step is None:
        return ()
    first, last = verdict.tokens_per_step
    words = f"a step gives {last:.2f} tokens, at first {first:.2f}"
    if verdict.ratio and not is_the_reason(verdict.tokens_per_step, verdict.ratio):
        words += f"; it takes {last / first / verdict.ratio:.1f} times as long"
    return (words,)


def _plainly(verdict: Verdict) -> tuple[str, ...]:
    if verdict.plain_tok_s is None:
        return ()
    first, last = verdict.plain_tok_s
    return (f"with speculation off it runs at {last:.1f} tok/s, at first at {first:.1f}",)


def _token_time(verdict: Verdict) -> tuple[str, ...]:
    if not verdict.ratio or not verdict.baseline_tok_s:
        return ()
    fresh_ms = 1000 / verdict.baseline_tok_s
    return (f"the same prompt takes {fresh_ms / verdict.ratio:.1f} ms a token, a fresh worker's {fresh_ms:.1f} ms",)


def memory_signs(evidence: Evidence) -> Iterator[str]:
    """What speaks for want of memory, a sentence each."""
    fresh, now = evidence.fresh, evidence.now
    if now is not None and now.host.pressure not in UNPRESSED:
        yield f"the system calls its memory pressure {now.host.pressure}"
    if fresh is None or now is None:
        return
    grown = now.memory_bytes - fresh.memory_bytes
    if grown > FOOTPRINT_GREW_BYTES and now.memory_bytes > FOOTPRINT_GREW * fresh.memory_bytes:
        yield f"the worker's memory grew from {_gb(fresh.memory_bytes)} to {_gb(now.memory_bytes)}"
    before, after = fresh.host, now.host
    if after.swap_used_bytes - before.swap_used_bytes > SWAP_GREW_BYTES:
        yield f"swap in use grew from {_gb(before.swap_used_bytes)} to {_gb(after.swap_used_bytes)}"
    for what, was, has in (
        ("compressed memory", before.compressed_bytes, after.compressed_bytes),
        ("wired memory", before.wired_bytes, after.wired_bytes),
    ):
        if was is not None and has is not None and has - was > MACHINE_GREW_SHARE * after.total_bytes:
            yield f"{what} grew from {_gb(was)} to {_gb(has)}"


def _strains(evidence: Evidence) -> Iterator[str]:
    if evidence.host_slowness > HOST_SLOW:
        yield f"the host check finds the machine slower than usual by {share(evidence.host_slowness)}"
    host = evidence.now.host if evidence.now else NO_READING
    if host.heat not in UNSTRAINED:
        yield f"the machine slows itself down because it is hot ({host.heat})"
    if host.is_low_power:
        yield "low power mode is on"


def _gb(size: int) -> str:
    return f"{size / GB:.1f} GB"
