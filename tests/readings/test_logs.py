"""What is read out of the log lines of known servers, as public reports have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.readings.freetoken import FreetokenLog
from supervisor.readings.mlx_lm import MlxLmLog
from supervisor.readings.omlx import OmlxLog
from supervisor.readings.reading import LogReader, Reading
from supervisor.readings.recollection import Recollection

RECORDED = Path(__file__).parent / "recorded"
READERS: tuple[type[LogReader], ...] = (OmlxLog, FreetokenLog, MlxLmLog)
WORDS = (
    *("MTP[1] ", "MTP batched: ", "DSPARK[", "accept=", "depth[", "d1=1/0", "timing[", "cycles=0", "tok/cycle=", "]"),
    *("Decode batch, ", "Prefill batch, ", "#running-req: ", "gen throughput (token/s): ", "#token: ", ", ", "9" * 400),
    *("Prompt processing progress: ", "1/2", "0", "-1", "\x1b[32m", "Chat completion: model=x, 1 tokens in 0s"),
)


def recorded(name: str) -> list[str]:
    lines = (RECORDED / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def read(reader: LogReader, name: str, every_s: float = 3.0) -> Iterator[Reading | None]:
    for place, line in enumerate(recorded(name)):
        yield reader.read(line, 100.0 + every_s * place)


# ---- omlx ----


def test_a_line_of_omlx_tells_step_phases_yield_and_acceptance_by_depth() -> None:
    slow = next(read(OmlxLog(), "omlx"))
    assert slow is not None
    assert slow.tokens_per_step == 3.2
    assert slow.acceptance == (109 / 117, 92 / 104, 64 / 71)
    assert slow.step_ms == pytest.approx((16180.7 + 1811.0 + 5.6 + 23.6) / 120)
    assert dict(slow.phases_ms)["backbone"] == pytest.approx(134.8, abs=0.1)
    assert list(dict(slow.phases_ms)) == ["backbone", "mtp", "sample", "cache"]


def test_every_variant_of_its_line_is_read_as_far_as_it_goes() -> None:
    told = [
        (reading.tokens_per_step, [round(share, 2) for share in reading.acceptance])
        for reading in read(OmlxLog(), "omlx")
        if reading and reading.context_tokens is None
    ]
    assert told == [
        (3.2, [0.93, 0.88, 0.9]),
        (2.64, [0.9, 0.72, 0.73]),
        (2.25, [0.77, 0.56, 0.7]),
        (2.94, [1.0]),
        (3.33, [1.0, 1.0, 0.85]),
        (3.0, [0.75]),  # without tok/cycle, and with drafts apart
        (3.0, [0.75]),
        *[(None, [])] * 4,  # batched, parked, and the probes of re-entry
        (1.6, []),
        (2.5, []),
    ]


def test_an_answer_of_omlx_tells_its_decode_rate_only_with_the_time_to_its_first_token() -> None:
    timed, untimed = [reading for reading in read(OmlxLog(), "omlx") if reading and reading.context_tokens]
    assert timed.decode_tok_s == pytest.approx(430 / (10.97 - 0.91))
    assert (untimed.decode_tok_s, untimed.context_tokens) == (None, 2030)


# ---- FreeToken ----


def test_the_first_decode_line_behind_a_prefill_is_not_believed() -> None:
    rates = [reading.decode_tok_s for reading in read(FreetokenLog(), "freetoken") if reading]
    assert rates == [None, 123.63 / 2, None, None, 11.2, 11.49, None, None, 12.53, 38.16]


def test_the_first_decode_line_behind_an_idle_gap_is_not_believed() -> None:
    reader, line = FreetokenLog(), recorded("freetoken")[-1]
    told = [reader.read(line, at) for at in (0.0, 3.0, 6.0, 126.0, 129.0)]
    assert [reading and reading.decode_tok_s for reading in told] == [None, 38.16, 38.16, None, 38.16]


def test_colours_and_all_fields_of_a_full_line_are_read() -> None:
    reader, line = FreetokenLog(), "\x1b[32m" + recorded("freetoken")[-1].replace("#queue", "\x1b[0m#queue")
    reader.read(line, 0.0)
    told = reader.read(line, 3.0)
    assert told == Reading(running=1, queued=0, decode_tok_s=38.16, context_tokens=230129, is_progress=True)


def test_a_prefill_line_tells_what_the_cache_knew() -> None:
    told = FreetokenLog().read(recorded("freetoken")[2], 0.0)
    assert told is not None
    assert told.cache_hit == pytest.approx(0.9546, abs=0.0001)
    assert told.is_progress


# ---- mlx_lm.server ----


def test_only_progress_of_a_prompt_is_progress_of_mlx_lm() -> None:
    told = [reading for reading in read(MlxLmLog(), "mlx_lm") if reading and reading.cache_bytes is None]
    assert [(reading.context_tokens, reading.is_progress) for reading in told] == [(36, True), (36, True)]


def test_mlx_lm_tells_how_big_its_prompt_cache_is_and_the_parts_of_it_are_not_counted_twice() -> None:
    said = ["Prompt Cache: 3 sequences, 1.25 GB", "- assistant: 3 sequences, 1.25 GB"]
    told = [MlxLmLog().read(f"2026-12-01 13:40:09,172 - INFO - {part}", 0.0) for part in said]
    assert [reading and reading.cache_bytes for reading in told] == [1.25e9, None]


def test_a_prompt_cache_that_grew_stands_in_the_servers_own_words() -> None:
    recollection, reader = Recollection(), MlxLmLog()
    for size in (0.1, 0.1, 0.1, 0.1, 0.1, 2.0, 2.0, 2.0, 2.0, 2.0):
        reading = reader.read(f"INFO - Prompt Cache: 3 sequences, {size:.2f} GB", 0.0)
        assert reading
        recollection.add(reading)
    words = recollection.own_words()
    assert words
    assert words.sentences == ("the server says: prompt cache 0.1 -> 2.0 GB",)


def test_the_prefill_rate_of_mlx_lm_shows_between_two_lines_of_a_long_prompt() -> None:
    reader = MlxLmLog()
    said = ["2048/8392", "4096/8392", "4100/8392", "2048/9000"]
    lines = [f"2026-12-01 13:40:09,172 - INFO - Prompt processing progress: {part}" for part in said]
    told = [reader.read(line, 4.0 * place) for place, line in enumerate(lines)]
    assert [reading and reading.prefill_tok_s for reading in told] == [None, 512.0, None, None]


# ---- all ----


@pytest.mark.parametrize("make", READERS)
@given(lines=st.lists(st.text() | st.lists(st.sampled_from(WORDS)).map("".join), max_size=8), step_s=st.floats(0, 1e9))
def test_no_line_makes_a_reader_raise(make: type[LogReader], lines: list[str], step_s: float) -> None:
    reader = make()
    for place, line in enumerate(lines):
        reading = reader.read(line, place * step_s)
        assert reading is None or isinstance(reading, Reading)


@pytest.mark.parametrize("make", READERS)
def test_a_line_of_somebody_else_tells_nothing(make: type[LogReader]) -> None:
    assert make().read('127.0.0.1 - "POST /v1/chat/completions HTTP/1.1" 200 OK', 0.0) is None
