"""freshlane status: a table, one lane in full, or the daemon's own words."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from supervisor.cli.render.lane_facts import why_and_next
from supervisor.cli.render.worth import monday, worth_line
from tests.cli.conftest import Run
from tests.cli.documents import LANES, QWEN
from tests.cli.stand_in import StandIn


async def test_the_table_shows_each_lane_with_its_reason_and_what_comes_next(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("status", url=stand_in.url)
    assert ended.code == 0
    assert "\x1b" not in ended.out, "a pipe gets no colours"
    head, *lines = ended.out.splitlines()
    assert " ".join(head.split()) == "LANE STATE TOK/S FRESH OF FRESH MEASURED WORKER UP MEMORY REQUESTS"
    smollm2, why, qwen, *_ = lines
    assert smollm2.split("  ")[0] == "smollm2"
    for fact in ("serving", "46.3", "47.1", "98 %", "6 h 13 min", "1.4 GB", "1 now"):
        assert fact in smollm2
    assert why == "  the first canaries are in → is measured again when idle"
    for fact in ("suspect", "8.41", "27.3", "31 %", "2 d", "2 now, 5 wait"):
        assert fact in qwen
    assert qwen.index("suspect") == smollm2.index("serving"), "columns are aligned"
    assert lines[-2].endswith("→ waits for `freshlane start`")
    assert lines[-1] == "since Monday: 3 recycles, +41 % tokens, 3 min 32 s down, 5 requests held, 0 failed"


async def test_a_daemon_that_cannot_tell_what_it_was_worth_is_shown_all_the_same(
    freshlane: Run, stand_in: StandIn
) -> None:
    stand_in.answers["/api/worth"] = 404, {"error": {"message": "not found"}}
    ended = await freshlane("status", url=stand_in.url)
    assert (ended.code, ended.err) == (0, "")
    assert "since Monday" not in ended.out


def test_a_week_begins_on_monday() -> None:
    assert monday(datetime(2026, 12, 6, 23, 59, tzinfo=UTC)) == datetime(2026, 11, 30, tzinfo=UTC)
    assert worth_line({"recycles": 0}) == "since Monday: no recycle was needed"


async def test_void_canaries_and_what_clients_streams_say_are_shown(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("status", "qwen", url=stand_in.url)
    assert "940 count, 13 are void (client_arrived 12, loop_lag 1)" in " ".join(ended.out.split())
    assert "clients' streams run at 30 %" in ended.out


def test_a_slow_host_is_told_in_words() -> None:
    verdict = {"status": "unknown", "reason": "host_slow: all lanes fell to 50 % of their rates"}
    told = why_and_next({"state": "serving", "reason": "generation 1 serves", "verdict": verdict})
    assert told == "generation 1 serves; the host is slow: all lanes fell to 50 % of their rates"


async def test_further_models_and_the_servers_own_words_are_shown(freshlane: Run, stand_in: StandIn) -> None:
    verdict = {"status": "suspect", "reason": "", "decode_tok_s": 25.1}
    models = {"coder": {"verdict": verdict, "last_probe": {"void": None}}, "tiny": {"last_probe": {"void": "failed"}}}
    said = ["step 55.3 -> 150.2 ms", "memory 20.1 -> 24.0 GB"]
    stand_in.answers["/api/lanes/qwen"] = 200, {**QWEN, "models": models, "said": said}
    lines = (await freshlane("status", "qwen", url=stand_in.url)).out.splitlines()
    assert "  models    coder suspect, 25.1 tok/s; tiny unknown, void: failed" in lines
    assert "  says      step 55.3 -> 150.2 ms; memory 20.1 -> 24.0 GB" in lines


async def test_one_lane_is_shown_in_full(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("status", "smollm2", url=stand_in.url)
    assert ended.code == 0
    facts = {line.split()[0]: line.split(maxsplit=1)[1] for line in ended.out.splitlines()}
    assert facts["smollm2"] == "serving for 6 h"
    assert facts["worker"] == "pid 4242, port 51234, generation 3, up 6 h 13 min, 1.4 GB"
    assert facts["speed"].startswith("46.3 tok/s, 98 % of fresh, measured ")
    assert facts["fresh"] == "47.1 tok/s after 256 tokens, 43.9 after 3072; from 3 spawns and 24 runs; good"
    assert facts["verdict"].endswith("(confidence 0.97)")


async def test_json_is_exactly_what_the_daemon_says(freshlane: Run, stand_in: StandIn) -> None:
    everything = await freshlane("status", "--json", url=stand_in.url)
    assert json.loads(everything.out) == {"lanes": list(LANES.values())}
    one = await freshlane("status", "qwen", "--json", url=stand_in.url)
    assert json.loads(one.out) == QWEN


async def test_trouble_with_the_disk_is_told_on_stderr(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.answers["/api/lanes"] = 200, {"lanes": [], "journal_trouble": "the disk is full"}
    ended = await freshlane("status", url=stand_in.url)
    assert (ended.code, ended.out, ended.err) == (0, "no lanes\n", "the disk is full\n")
