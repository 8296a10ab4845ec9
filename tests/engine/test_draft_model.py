"""A draft model changes speed, never the output, and its cache follows what the target decides."""

from __future__ import annotations

import pytest
from tiny_model import (
    VOCABULARY,
    WIDTHS,
    ScriptedPolicy,
    assert_same_up_to_ties,
    decoded,
    random_prompt,
    reference,
    tiny_model,
)

from engine.drafters import NoDrafter
from engine.drafters.draft_model import CHUNK, DraftModelDrafter
from engine.drafters.ngram import NgramDrafter
from engine.request import Sampling

COUNT = 40


@pytest.fixture(scope="module")
def target():
    return tiny_model()


def draft_model(seed: int) -> DraftModelDrafter:
    return DraftModelDrafter(tiny_model(seed), VOCABULARY, 512)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_draft_model_gives_what_plain_decoding_gives(target, width):
    drafter = draft_model(1)
    for seed in range(2):
        prompt = random_prompt(seed)
        expected = reference(target, prompt, COUNT)
        got = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([width]), paid=drafter)
        assert_same_up_to_ties(target, prompt, expected, got)


@pytest.mark.parametrize("seed", range(4))
def test_random_schedules_with_shadows_and_ngrams_between_give_the_same(target, seed):
    drafter, policy = draft_model(2), ScriptedPolicy(WIDTHS, seed, shadows=0.4)
    prompt = random_prompt(seed)
    expected = reference(target, prompt, COUNT)
    got = decoded(target, prompt, COUNT, NgramDrafter(), policy, paid=drafter)
    assert_same_up_to_ties(target, prompt, expected, got)


@pytest.mark.parametrize("width", [1, 7])
def test_the_target_as_its_own_draft_is_always_right(target, width):
    prompt = random_prompt(5)
    expected = reference(target, prompt, COUNT)
    policy = ScriptedPolicy([width])
    got = decoded(target, prompt, COUNT, NoDrafter(), policy, paid=draft_model(0))
    assert_same_up_to_ties(target, prompt, expected, got)
    assert policy.cycles
    assert all(drafted == accepted for drafted, accepted in policy.cycles)


def test_penalties_see_the_same_tokens_under_a_draft_model(target):
    sampling = Sampling(0, repetition_penalty=1.3, presence_penalty=0.5, logit_bias={3: 2.0})
    prompt = random_prompt(6)
    expected = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([0]), sampling=sampling)
    policy = ScriptedPolicy(WIDTHS, 1)
    assert decoded(target, prompt, COUNT, NoDrafter(), policy, sampling=sampling, paid=draft_model(1)) == expected


@pytest.mark.parametrize("sampling", [Sampling(1.0, seed=5), Sampling(0.7, seed=5, top_k=8, top_p=0.9)])
def test_a_seed_gives_the_same_sample_under_a_draft_model(target, sampling):
    prompt = random_prompt(7)
    expected = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([0]), sampling=sampling)
    policy = ScriptedPolicy(WIDTHS, 2)
    assert decoded(target, prompt, COUNT, NoDrafter(), policy, sampling=sampling, paid=draft_model(1)) == expected


def test_a_stop_token_inside_an_accepted_block_ends_the_output(target):
    prompt = random_prompt(3)
    expected = reference(target, prompt, COUNT)
    stop = expected[10]
    got = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([7]), stops=frozenset({stop}), paid=draft_model(0))
    assert got == expected[: expected.index(stop) + 1]


def test_a_long_prompt_is_taken_in_piece_by_piece(target):
    drafter = draft_model(0)
    prompt = random_prompt(8, CHUNK + 40)
    drafter.begin(prompt)
    assert drafter.propose(3).tokens == ()
    assert drafter.propose(3).tokens == tuple(reference(target, prompt, 3))


def test_a_rejected_draft_leaves_no_trace(target):
    drafter = draft_model(0)
    prompt = random_prompt(9)
    drafter.begin(prompt)
    drafter.propose(7)
    other = [*prompt, 11, 12]
    drafter.extend([11, 12])
    assert drafter.propose(4).tokens == tuple(reference(target, other, 4))
    drafter.begin(prompt)
    assert drafter.propose(4).tokens == tuple(reference(target, prompt, 4))


def test_nothing_is_proposed_beyond_the_context_of_the_draft_model():
    drafter = DraftModelDrafter(tiny_model(), VOCABULARY, 26)
    drafter.begin(random_prompt(1))
    assert drafter.propose(3).tokens == ()
    assert len(drafter.propose(2).tokens) == 2


@pytest.mark.parametrize("way", ["cut", "copied"])
def test_what_it_knew_of_a_beginning_is_not_fed_again(target, way):
    drafter, text = draft_model(0), random_prompt(9, 30)
    drafter.begin(text)
    drafter.propose(7)
    memory = drafter.memory(20)
    drafter.recall(None)
    drafter.begin(random_prompt(10))  # another sequence, meanwhile
    drafter.propose(3)
    if way == "cut":
        memory.cut(15)
    else:
        memory = memory.copied(15)
    turn = [*text[:15], *random_prompt(11, 10)]
    drafter.recall(memory)
    assert drafter._fed == text[:15]
    drafter.begin(turn)
    assert drafter.propose(4).tokens == tuple(reference(target, turn, 4))
