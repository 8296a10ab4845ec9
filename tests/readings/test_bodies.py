"""What is read out of the endpoints of known servers. Bodies in ``composed`` are made of the names in their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.readings.dflash_mlx import dflash_metrics
from supervisor.readings.engine import engine_stats
from supervisor.readings.freetoken import freetoken_stats
from supervisor.readings.llama_server import llama_metrics
from supervisor.readings.omlx import omlx_status
from supervisor.readings.reading import BodyReader, Reading, Totals, between, is_another_life
from supervisor.readings.vllm import vllm_metrics

COMPOSED = Path(__file__).parent / "composed"
READERS = (dflash_metrics, engine_stats, freetoken_stats, llama_metrics, omlx_status, vllm_metrics)
KEYS = (
    *("server", "last_request", "current_request", "totals", "memory", "acceptance", "phase_seconds", "throughput"),
    *("cycles", "phase_timings_us", "decode_tok_s", "generated_tokens", "uptime_s", "active", "acceptance_rate"),
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES)).map(
    lambda said: {"server": {}, **said}
)


def body(name: str, **changes: str) -> bytes:
    text = (COMPOSED / name).read_text()
    for old, new in changes.items():
        text = text.replace(old, new)
    return text.encode()


def told(reader: BodyReader, content: bytes) -> Reading:
    reading = reader(content)
    assert reading is not None
    return reading


def test_dflash_tells_of_its_last_request_and_a_cycle_of_it() -> None:
    reading = told(dflash_metrics, body("dflash_mlx.json"))
    assert (reading.decode_tok_s, reading.tokens_per_step, reading.acceptance) == (19.34, 2.95, (0.66,))
    assert reading.phases_ms == (("draft", 10.0), ("verify", 130.0))
    assert (reading.step_ms, reading.context_tokens, reading.cache_hit) == (140.0, 8392, 0.25)
    assert (reading.memory_bytes, reading.uptime_s, reading.running) == (21e9, 812.5, 0)


def test_a_request_that_runs_moves_dflashs_counts() -> None:
    said = json.loads(body("dflash_mlx.json"))
    said["current_request"] = {"generated_tokens": 12, "prefill_tokens_processed": 2048}
    reading = told(dflash_metrics, json.dumps(said).encode())
    assert (reading.running, reading.totals.counters) == (1, (582.0, 18829.0))


@pytest.mark.parametrize(("reader", "name"), [(llama_metrics, "llama_server.txt"), (vllm_metrics, "vllm.txt")])
def test_what_speculation_gave_shows_between_two_looks_at_prometheus_counts(reader: BodyReader, name: str) -> None:
    after = told(reader, body(name))
    before = Reading(totals=Totals(600.0, 10.0, 1000.0, 1.0, 200.0, 600.0, (190.0, 130.0, 80.0)))
    since = between(before, after)
    assert since.decode_tok_s == 60.0
    assert since.tokens_per_step == 3.0
    assert since.acceptance == (0.95, 0.65, 0.4)
    assert since.step_ms == 50.0
    assert since.is_progress


def test_llama_server_tells_its_queue() -> None:
    reading = told(llama_metrics, body("llama_server.txt"))
    assert (reading.running, reading.queued) == (1, 3)


def test_vllm_tells_its_queue_its_cache_and_when_it_began() -> None:
    reading = told(vllm_metrics, body("vllm.txt"))
    assert (reading.running, reading.queued, reading.cache_hit) == (2, 1, 0.25)
    restarted = told(vllm_metrics, body("vllm.txt", **{"1.79e+09": "1.7900001e+09"}))
    assert is_another_life(reading, restarted)
    assert not is_another_life(reading, reading)


def test_omlx_tells_its_queue_and_uptime_and_its_mean_of_a_lifetime_is_not_believed() -> None:
    reading = told(omlx_status, body("omlx_status.json"))
    assert reading == Reading(running=1, queued=2, uptime_s=36000.5)


def test_freetokens_rate_of_nothing_is_no_rate() -> None:
    reading = told(freetoken_stats, body("freetoken_stats.json"))
    assert (reading.decode_tok_s, reading.prefill_tok_s) == (64.5, None)
    assert (reading.uptime_s, reading.identity) == (900.0, "b21f")


def test_our_engine_tells_each_phase_of_a_cycle() -> None:
    def stats(tokens: int, cycles: int, backbone_s: float) -> bytes:
        phases = {"backbone": backbone_s, "draft": cycles * 0.01, "sample": 0.0, "cache": 0.0}
        return json.dumps(
            {"generated_tokens": tokens, "acceptance": {"cycles": cycles}, "phase_seconds": phases}
        ).encode()

    since = between(told(engine_stats, stats(100, 40, 1.0)), told(engine_stats, stats(130, 50, 1.5)))
    assert since.tokens_per_step == 3.0
    assert dict(since.phases_ms) == pytest.approx({"backbone": 50.0, "draft": 10.0})
    assert since.step_ms == pytest.approx(60.0)


@pytest.mark.parametrize(
    ("before", "after", "is_another"),
    [
        (Reading(uptime_s=900.0), Reading(uptime_s=12.0), True),
        (Reading(uptime_s=12.0), Reading(uptime_s=14.0), False),
        (Reading(identity="a"), Reading(identity="b"), True),
        (Reading(totals=Totals(tokens=100.0)), Reading(totals=Totals(tokens=3.0)), True),
        (Reading(totals=Totals(tokens=100.0)), Reading(), False),
    ],
)
def test_another_life_is_told_by_name_uptime_or_counts_that_fell(
    before: Reading, after: Reading, is_another: bool
) -> None:
    assert is_another_life(before, after) is is_another


@given(content=st.binary() | st.text().map(str.encode) | DOCUMENTS.map(json.dumps).map(str.encode))
@settings(deadline=None)
def test_no_body_makes_a_reader_raise(content: bytes) -> None:
    for reader in READERS:
        reading = reader(content)
        assert reading is None or isinstance(reading, Reading)


@pytest.mark.parametrize(("reader", "name"), [(llama_metrics, "llama_server.txt"), (vllm_metrics, "vllm.txt")])
@given(cut=st.integers(0, 3000), put=st.text(max_size=8))
@settings(deadline=None, max_examples=50)
def test_no_broken_prometheus_text_makes_a_reader_raise(reader: BodyReader, name: str, cut: int, put: str) -> None:
    text = (COMPOSED / name).read_text()
    reader((text[:cut] + put + text[cut:]).encode())
