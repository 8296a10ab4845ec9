"""First and last readings are compared under like conditions only, and never more are kept than bounds say."""

from __future__ import annotations

from pathlib import Path

from supervisor.readings.freetoken import FreetokenLog
from supervisor.readings.omlx import OmlxLog
from supervisor.readings.reading import Reading
from supervisor.readings.recollection import MOST_CONDITIONS, RUNS, Recollection

SLOW = (Path(__file__).parent / "recorded" / "omlx.txt").read_text().splitlines()[2]
FRESH = SLOW.replace("backbone=16180.7ms", "backbone=4800.0ms")


def test_the_report_of_omlx_blames_the_backbone_and_not_the_drafts() -> None:
    recollection, log = Recollection(), OmlxLog()
    for line in [FRESH] * 10 + [SLOW] * 5:
        reading = log.read(line, 0.0)
        assert reading is not None
        recollection.add(reading, 256)
    words = recollection.own_words()
    assert words is not None
    assert words.sentences == (
        "the server says: step 55.3 -> 150.2 ms (backbone 40.0 -> 134.8 ms, mtp 15.1 -> 15.1 ms, sample 0.0 -> 0.0 ms, "
        "cache 0.2 -> 0.2 ms)",
        "the server says: 3.20 -> 3.20 tokens a step, drafts taken, by depth: 93 % -> 93 %, 88 % -> 88 %, 90 % -> 90 %",
    )


def test_the_report_of_freetoken_compares_contexts_of_like_size() -> None:
    recollection, log = Recollection(), FreetokenLog()
    at = 0.0
    for context, rate, lines in ((77_000, 65.0, 8), (9_000, 118.0, 8), (127_542, 11.2, 8)):
        log.read("Prefill batch, #new-token: 5792, #cached-token: 0", at)
        for _ in range(lines):
            at += 3.0
            text = f"Decode batch, #running-req: 1, #token: {context}, gen throughput (token/s): {rate}, #queue-req: 0"
            reading = log.read(text, at)
            assert reading is not None
            recollection.add(reading)
    words = recollection.own_words()
    assert words is not None
    assert words.sentences == ("the server says: decode 65.0 -> 11.2 tok/s",)


def test_canaries_are_believed_before_clients() -> None:
    recollection = Recollection()
    for _ in range(RUNS + 1):
        recollection.add(Reading(decode_tok_s=60.0), 256)
    for _ in range(3 * RUNS):
        recollection.add(Reading(decode_tok_s=20.0))
    words = recollection.own_words()
    assert words is not None
    assert words.decode_tok_s == (60.0, 60.0)


def test_too_few_readings_and_readings_without_numbers_say_nothing() -> None:
    recollection = Recollection()
    for _ in range(RUNS):
        recollection.add(Reading(decode_tok_s=60.0))
        recollection.add(Reading(running=1, is_progress=True))
    assert recollection.own_words() is None


def test_ever_new_conditions_take_no_ever_growing_memory() -> None:
    recollection = Recollection()
    for running in range(10 * MOST_CONDITIONS):
        for _ in range(RUNS + 1):
            recollection.add(Reading(running=running, decode_tok_s=1.0))
    assert len(recollection._by_conditions) == MOST_CONDITIONS


def test_growing_memory_is_told_also_by_a_server_that_tells_no_speed() -> None:
    recollection = Recollection()
    for gigabytes in range(1, 12):
        recollection.add(Reading(memory_bytes=gigabytes * 1e9))
    words = recollection.own_words()
    assert words is not None
    assert words.sentences == ("the server says: memory 3.0 -> 9.0 GB",)
