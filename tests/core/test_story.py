"""What a record tells in sentences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.core.account.record import Outcome, RecycleRecord
from supervisor.core.account.story import BEGINNINGS, sentences, told
from supervisor.core.terms import Trigger


def test_every_trigger_has_a_beginning_of_its_own() -> None:
    assert set(BEGINNINGS) == {trigger.value for trigger in Trigger}
    assert len(set(BEGINNINGS.values())) == len(BEGINNINGS)


def test_a_recycle_that_was_given_up_says_that_the_old_worker_serves_on() -> None:
    record = {"lane": "qwen", "trigger": "degraded", "outcome": "aborted", "next": "tried again in 10 min"}
    assert told(record) == (
        "qwen: The worker had become slow. The old worker serves on; no request waited, none failed. "
        "Next: tried again in 10 min."
    )


def test_a_recycle_after_which_no_worker_came_up_says_so() -> None:
    assert "No new worker came up." in sentences({"trigger": "operator", "outcome": "failed"})


def test_what_was_tried_before_a_recycle_is_told_with_what_it_brought() -> None:
    tried = [
        {"name": "clear_cache", "outcome": "futile", "ratio": 0.31},
        {"name": "drop_prefix_cache", "outcome": "failed", "ratio": None},
    ]
    record = {"trigger": "degraded", "outcome": "cured", "downtime_s": 3.0, "remedies": tried}
    assert sentences(record)[1] == (
        "First clear_cache was tried and brought nothing (31 % of fresh), then drop_prefix_cache was tried and failed."
    )
    assert sentences(record)[2].startswith("No worker served for 3")


def test_what_was_never_measured_is_not_told() -> None:
    [why, cost] = sentences({"trigger": "operator", "reason": "new driver", "outcome": "replaced", "downtime_s": 0})
    assert why == "A person wanted a new worker: new driver."
    assert cost == "There was no downtime; no request waited, none failed."


@pytest.mark.parametrize("trigger", list(Trigger))
@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_an_empty_record_of_every_kind_is_told_in_two_or_three_sentences(trigger: Trigger, outcome: Outcome) -> None:
    record = RecycleRecord(lane="qwen", trigger=trigger, outcome=outcome).to_json()
    assert 2 <= len(sentences(record)) <= 3


FACTS = (
    st.none()
    | st.floats(0, 1e6, allow_nan=False)
    | st.dictionaries(
        st.sampled_from(["decode_tok_s", "ratio", "held", "failed", "cut", "uptime_s"]), st.none() | st.floats(0, 1e6)
    )
)


@given(
    st.dictionaries(st.sampled_from(["trigger", "outcome", "reason", "next", "lane"]), st.text(max_size=20)),
    st.dictionaries(st.sampled_from(["before", "after", "worker", "requests", "drain"]), st.none() | FACTS),
)
def test_a_record_of_any_version_is_told(words: dict[str, Any], facts: dict[str, Any]) -> None:
    known = {name: fact for name, fact in facts.items() if fact is None or isinstance(fact, dict)}
    for sentence in sentences({**words, **known}):
        assert sentence.endswith(".")
        assert not sentence[0].islower()
