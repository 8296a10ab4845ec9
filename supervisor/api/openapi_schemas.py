"""The JSON shapes of /api, as OpenAPI 3.1 (JSON Schema 2020-12). Readers must tolerate fields not named here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from supervisor.core.account.record import CauseKind, Effect, Outcome
from supervisor.core.samples import Purpose, Status, Void
from supervisor.core.states import LaneState
from supervisor.core.terms import Replace, Trigger

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"]}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
RATES: Schema = {"type": "array", "items": NUMBER}
INTERVAL: Schema = {"type": ["array", "null"], "items": NUMBER, "minItems": 2, "maxItems": 2}
BY_SIZE: Schema = {
    "type": "object",
    "additionalProperties": NUMBER_OR_NULL,
    "description": "Decode rate by prompt tokens.",
}


def ref(name: str) -> Schema:
    """The schema of that name."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(item: Schema) -> Schema:
    """An array."""
    return {"type": "array", "items": item}


def nullable(schema: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def record(required: Iterable[str] = (), **properties: Schema) -> Schema:
    """An object with these fields and perhaps others."""
    schema: Schema = {"type": "object", "properties": properties}
    names = list(required)
    return {**schema, "required": names} if names else schema


def words(values: Iterable[str]) -> Schema:
    """One of these texts."""
    return {"type": "string", "enum": [str(value) for value in values]}


_WORKER = record(
    ("generation",),
    pid=COUNT_OR_NULL,
    port=COUNT_OR_NULL,
    generation=COUNT,
    started_at=TIME,
    uptime_s=NUMBER,
    memory_bytes=COUNT_OR_NULL,
)
_CHANGE = {
    "ratio": {**NUMBER, "description": "Fresh workers now over fresh workers then."},
    "interval": list_of(NUMBER),
    "now": {**TEXT, "description": "The versions, or the model, that changed."},
    "then": TEXT,
    "text": TEXT,
}
_BASELINE = record(
    decode_tok_s=NUMBER_OR_NULL,
    by_prompt_tokens=BY_SIZE,
    spawns=COUNT,
    runs=COUNT,
    quality=TEXT_OR_NULL,
    modes={**RATES, "description": "Rates at which workers have come up, fastest first: one, or two."},
    spawn_tok_s={**RATES, "description": "Of each worker that it rests on, oldest first."},
    fingerprint=TEXT,
    changed={
        **nullable(record(("time", "parts"), time=TIME, parts=list_of(TEXT))),
        "description": "What changed when all that was learned before was dropped last.",
    },
    prefill={
        **record(tok_s=NUMBER_OR_NULL, by_prompt_tokens=BY_SIZE, spawns=COUNT, runs=COUNT, quality=TEXT_OR_NULL),
        "description": "The same of reading: prompt tokens a second.",
    },
    ageing={
        **record(lives=COUNT, best_age_s=NUMBER_OR_NULL, is_left_alone={"type": "boolean"}),
        "description": "With `recycle.learn: on`: lives that were seen, and the age at which a worker is replaced.",
    },
    version_change={**nullable(record(**_CHANGE)), "description": "What the newest change of version or model did."},
)
_SAMPLE = record(
    ("prompt_tokens", "purpose"),
    lane=TEXT,
    wall={"type": "number", "description": "Unix seconds."},
    generation=COUNT,
    prompt_tokens=COUNT,
    purpose=words(Purpose),
    model={**TEXT, "description": "The further model that was asked, as a key of `serves`; empty: the lane's own."},
    decode_tok_s=NUMBER_OR_NULL,
    void={"enum": [*(str(value) for value in Void), None], "description": "Why the run does not count; null: it does."},
    detail=TEXT,
    tokens=COUNT,
    ttft_s=NUMBER_OR_NULL,
    took_s=NUMBER,
    prefill_tok_s=NUMBER_OR_NULL,
    plain_tok_s={**NUMBER_OR_NULL, "description": "With speculation off, right after it."},
)
_VERDICT = record(
    ("status", "reason"),
    model={**TEXT, "description": "The further model in doubt, as a key of `serves`; empty: the lane's own."},
    status=words(Status),
    ratio={**NUMBER_OR_NULL, "description": "Worker over baseline."},
    interval=INTERVAL,
    confidence=NUMBER_OR_NULL,
    reason=TEXT,
    prefill={
        **nullable(
            record(
                ("status",),
                status=words(Status),
                ratio=NUMBER_OR_NULL,
                interval=INTERVAL,
                tok_s=NUMBER_OR_NULL,
                reason=TEXT,
            )
        ),
        "description": "How fast it reads prompts, judged apart; null while there is nothing to hold it against.",
    },
)
_COUNTS: Schema = {"type": "object", "additionalProperties": COUNT}
_TOTALS = record(
    requests=COUNT,
    failed=COUNT,
    held=COUNT,
    cut=COUNT,
    replayed=COUNT,
    generated_tokens=COUNT,
    canaries={**_COUNTS, "description": "Canary runs: clean, or by the reason of the void."},
    recycles=COUNT,
    recycles_by_trigger={"type": "object", "additionalProperties": _COUNTS},
    downtime_s=NUMBER,
)
_MODEL = record(
    model=TEXT_OR_NULL,
    baseline=nullable(ref("Baseline")),
    last_probe=nullable(ref("Sample")),
    verdict=ref("Verdict"),
)
_LANE = record(
    ("name", "state", "since", "reason", "next_action", "inflight", "queued", "verdict", "totals"),
    name=TEXT,
    model=TEXT,
    aliases=list_of(TEXT),
    state=words(LaneState),
    since=TIME,
    reason=TEXT,
    next_action=TEXT,
    worker=nullable(ref("Worker")),
    candidate=nullable(ref("Worker")),
    retiring=list_of(ref("Worker")),
    inflight=COUNT,
    queued=COUNT,
    baseline=nullable(ref("Baseline")),
    degraded=record(below=NUMBER, severe=NUMBER),
    last_probe=nullable(ref("Sample")),
    verdict=ref("Verdict"),
    settings_changed={
        **nullable(record(time=TIME, files=list_of(TEXT))),
        "description": "When a file of `watch_files` changed last while a worker lived; it was measured anew.",
    },
    said={**list_of(TEXT), "description": "What the worker says of itself: when it was new, and now."},
    models={
        "type": "object",
        "additionalProperties": _MODEL,
        "description": "Each further model of the worker, by its key of `serves`.",
    },
    clients=record(
        streams=COUNT,
        ratio={**NUMBER_OR_NULL, "description": "Clients' last streams over the worker's first, kind by kind."},
        estimated={"type": "boolean", "description": "Tokens were not told, and were counted by chunks."},
        suspicion=TEXT_OR_NULL,
        by_context_tokens=BY_SIZE,
        context=TEXT_OR_NULL,
    ),
    totals=ref("Totals"),
)
_FLEET = record(
    ("lanes", "version"),
    lanes=list_of(ref("Lane")),
    version=TEXT,
    started_at=TIME,
    config_path=TEXT,
    journal_trouble=TEXT_OR_NULL,
    history_trouble=TEXT_OR_NULL,
    loop_lag_ms=NUMBER_OR_NULL,
)
_BEFORE = record(
    decode_tok_s=NUMBER_OR_NULL,
    baseline_tok_s=NUMBER_OR_NULL,
    ratio=NUMBER_OR_NULL,
    interval=INTERVAL,
    confidence=NUMBER_OR_NULL,
    by_prompt_tokens=BY_SIZE,
    samples=RATES,
    model=TEXT,
)
_OLD_WORKER = record(
    pid=COUNT_OR_NULL,
    generation=COUNT,
    uptime_s=NUMBER,
    requests=COUNT,
    generated_tokens=COUNT,
    memory_bytes=COUNT_OR_NULL,
)
_RECYCLE = record(
    ("id", "time", "lane", "trigger", "outcome"),
    id=TEXT,
    time=TIME,
    lane=TEXT,
    trigger=words(Trigger),
    cause=record(kind=words(CauseKind), evidence=list_of(TEXT)),
    reason=TEXT,
    before=_BEFORE,
    worker=_OLD_WORKER,
    drain=record(inflight=COUNT, waited_s=NUMBER, held=COUNT, cut=COUNT),
    stop=record(signal=TEXT_OR_NULL, took_s=NUMBER_OR_NULL, killed=FLAG),
    memory=record(before=COUNT_OR_NULL, after_exit=COUNT_OR_NULL, after_start=COUNT_OR_NULL),
    remedies=list_of(
        record(
            name=TEXT,
            decode_tok_s=NUMBER_OR_NULL,
            before_tok_s=NUMBER,
            ratio=NUMBER_OR_NULL,
            took_s=NUMBER,
            outcome=words(Effect),
        )
    ),
    replace=words(Replace),
    downtime_s=NUMBER,
    requests=record(held=COUNT, failed=COUNT, replayed=COUNT),
    prefix_cache=record(saved_tokens=COUNT, restored_tokens=COUNT),
    after=record(decode_tok_s=NUMBER_OR_NULL, ratio=NUMBER_OR_NULL, samples=RATES),
    outcome={"enum": [*(str(value) for value in Outcome), None]},
    next=TEXT,
)
_ERROR = record(
    ("error",),
    error=record(
        ("message", "type", "source"),
        message=TEXT,
        type=TEXT,
        param=TEXT_OR_NULL,
        code=TEXT_OR_NULL,
        source={"const": "freshlane"},
        problems={**list_of(TEXT), "description": "Of a lanes.yaml that was refused: all of them."},
    ),
)

SCHEMAS: dict[str, Schema] = {
    "Fleet": _FLEET,
    "Lane": _LANE,
    "Worker": _WORKER,
    "Baseline": _BASELINE,
    "Sample": _SAMPLE,
    "Verdict": _VERDICT,
    "Totals": _TOTALS,
    "Recycle": _RECYCLE,
    "Recycles": record(("recycles",), recycles=list_of(ref("Recycle"))),
    "Samples": record(("samples",), samples=list_of(ref("Sample"))),
    "Worth": record(
        ("recycles", "downtime_s", "held", "failed"),
        since={**NUMBER, "description": "Unix seconds."},
        recycles=COUNT,
        downtime_s=NUMBER,
        held=COUNT,
        failed=COUNT,
        gain={**NUMBER_OR_NULL, "description": "Tokens over those without the recycles, less one."},
        version_changes={
            **list_of(record(("lane",), lane=TEXT, **_CHANGE)),
            "description": "What other versions did to lanes.",
        },
    ),
    "Ask": {
        **record(reason={**TEXT, "maxLength": 500}, now={**FLAG, "description": "Answers in flight may be cut."}),
        "additionalProperties": False,
    },
    "Asked": record(("lane", "asked"), lane=TEXT, asked=TEXT),
    "Health": record(("status",), status=TEXT, reason=TEXT),
    "Version": record(
        ("name", "version"),
        name={"const": "freshlane"},
        version=TEXT,
        python=TEXT,
        platform=TEXT,
        started_at=TIME,
        config_path=TEXT,
    ),
    "Reload": record(
        ("lanes", "needs_restart", "errors"),
        lanes={"type": "object", "additionalProperties": words(("kept", "updated", "recycled", "added", "removed"))},
        needs_restart=list_of(TEXT),
        errors=list_of(TEXT),
    ),
    "Login": record(("key",), key=TEXT),
    "Error": _ERROR,
}
