"""Sliding windows and recurrent layers: a second turn finds its beginning, and decodes as if it were new."""

from __future__ import annotations

import pytest
from tiny_kinds import KINDS, WINDOW, tiny_kind
from tiny_model import EOS, VOCABULARY, assert_same_up_to_ties, random_prompt, reference

from engine.boundaries import boundaries
from engine.model import LoadedModel
from engine.prefix_cache import MOST_MARKS
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Sampling
from engine.rollback import can_rewind
from engine.scheduler import Scheduler

FIRST = random_prompt(1, 2 * WINDOW + 3)
END = [EOS, 11]


@pytest.fixture(params=KINDS)
def model(request):
    return tiny_kind(request.param)


@pytest.fixture
def scheduler(model):
    info = ModelInfo("tiny", None, VOCABULARY, 512, frozenset({EOS}))
    return Scheduler(LoadedModel(model, info, 0), EngineSettings("tiny"))


def answer(scheduler: Scheduler, prompt: list[int], count: int) -> list[int]:
    request = GenerationRequest("test", tuple(prompt), count, Sampling(temperature=0))
    return [token for batch in scheduler.decode(request) for token in batch.tokens]


def check(scheduler: Scheduler, model, turn: list[int], found: int) -> None:
    got = answer(scheduler, turn, 12)
    assert scheduler.usage.cached_tokens == found
    assert_same_up_to_ties(model, turn, reference(model, turn, 12), got)


def test_they_are_of_the_kind_that_cannot_be_rewound(model):
    assert not can_rewind(model.make_cache())


@pytest.mark.parametrize("count", [1, 2, 7, WINDOW + 5])
def test_a_turn_goes_on_wherever_the_answer_stopped(scheduler, model, count):
    given = answer(scheduler, FIRST, count)
    check(scheduler, model, [*FIRST, *given, *random_prompt(2, 6)], len(FIRST) + count - 1)


def test_a_turn_that_drops_what_was_thought_begins_where_the_prompt_ended(scheduler, model):
    answer(scheduler, FIRST, WINDOW + 4)
    check(scheduler, model, [*FIRST, *random_prompt(3, 9)], len(FIRST) - 1)


def test_other_conversations_begin_after_the_message_that_they_share(scheduler, model):
    system, question = [*random_prompt(4, 20), *END], [*random_prompt(5, WINDOW), *END]
    answer(scheduler, [*system, *question, 12], 9)
    check(scheduler, model, [*system, *random_prompt(6, 25), *END, 12], len(system) - 1)
    check(scheduler, model, [*system, *question, *random_prompt(7, 4)], len(system) + len(question))


def test_the_same_prompt_again_feeds_its_last_token_alone(scheduler, model):
    assert answer(scheduler, FIRST, 10) == answer(scheduler, FIRST, 10)
    assert scheduler.usage.cached_tokens == len(FIRST) - 1


def test_a_cancelled_request_leaves_a_cache_that_is_true(scheduler, model):
    steps = scheduler.decode(GenerationRequest("cut", tuple(FIRST), 50, Sampling(temperature=0)))
    output: list[int] = []
    while len(output) < 9:
        output += next(steps).tokens
    steps.close()
    check(scheduler, model, [*FIRST, *output, 1, 2], len(FIRST) + len(output))


def test_a_long_conversation_keeps_a_few_marks(scheduler, model):
    turn = [*FIRST, *END, 12]
    for seed in range(6):
        turn += [*answer(scheduler, turn, 5), *random_prompt(seed, 5), *END, 12]
    [entry] = scheduler._prefixes.memory.newest_first()
    assert len(entry.marks) == MOST_MARKS
    assert min(entry.marks) == len(FIRST) + 1
    assert scheduler._prefixes.memory.nbytes == entry.nbytes


def test_boundaries_are_the_ends_of_messages_and_of_the_prompt():
    assert boundaries([1, 2, 9, 3, 9, 4, 9, 5, 6], {9}) == (3, 7, 8)
    assert boundaries([1, 2, 3], {9}) == (2,)
    assert boundaries([1, 2, 9], {9}) == (2,)
    assert boundaries([9], {9}) == ()
