"""A prompt that begins like an earlier one decodes as if it were new, from fewer fed tokens."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_lm.models.cache import make_prompt_cache
from tiny_model import (
    EOS,
    OracleDrafter,
    ScriptedPolicy,
    assert_same_up_to_ties,
    random_prompt,
    reference,
    tiny_model,
)

from engine.model import LoadedModel
from engine.plain import Sequence
from engine.prefix_cache import Beginning, PrefixCache
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Sampling
from engine.sampling import Chooser
from engine.scheduler import Scheduler
from engine.speculate import decode


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture
def scheduler(model):
    info = ModelInfo("tiny", None, 48, 512, frozenset({EOS}))
    return Scheduler(LoadedModel(model, info, 0), EngineSettings("tiny"))


def answer(scheduler: Scheduler, prompt: list[int], count: int, **options: object) -> list[int]:
    request = GenerationRequest("test", tuple(prompt), count, Sampling(temperature=0), **options)
    return [token for batch in scheduler.decode(request) for token in batch.tokens]


def fed_cache(model, tokens: list[int]):
    cache = make_prompt_cache(model)
    model(mx.array([tokens]), cache=cache)
    mx.eval([layer.state for layer in cache])
    return cache


@pytest.mark.parametrize("count", range(1, 12))
def test_a_second_turn_equals_a_fresh_one_wherever_the_first_stopped(scheduler, model, count):
    first = random_prompt(1)
    turn = first + answer(scheduler, first, count) + random_prompt(2, 6)
    second = answer(scheduler, turn, 20)
    assert scheduler.usage.cached_tokens >= len(first) + count - 1
    assert_same_up_to_ties(model, turn, reference(model, turn, 20), second)


def test_the_same_prompt_again_feeds_its_last_token_alone(scheduler, model):
    prompt = random_prompt(4)
    assert answer(scheduler, prompt, 10) == answer(scheduler, prompt, 10)
    assert scheduler.usage.cached_tokens == len(prompt) - 1


def test_a_cancelled_request_leaves_a_cache_that_is_true(scheduler, model):
    prompt = random_prompt(5)
    steps = scheduler.decode(GenerationRequest("cut", tuple(prompt), 50, Sampling(temperature=0)))
    output: list[int] = []
    while len(output) < 9:
        output += next(steps).tokens
    steps.close()
    turn = prompt + output + [1, 2]
    got = answer(scheduler, turn, 20)
    assert scheduler.usage.cached_tokens >= len(prompt) + 8
    assert_same_up_to_ties(model, turn, reference(model, turn, 20), got)


def test_a_prompt_that_only_begins_alike_leaves_the_longer_one_cached(model):
    store = PrefixCache(1 << 30)
    long = random_prompt(6, 40)
    store.keep(long, 40, fed_cache(model, long))
    other = [*long[:8], 44, 45]
    found = store.take(other)
    assert found.length == 8
    assert {layer.offset for layer in found.cache} == {8}
    assert store.take([*long, 1]).length == 40


def test_a_key_is_never_longer_than_what_was_fed(model):
    store = PrefixCache(1 << 30)
    tokens = random_prompt(7, 20)
    store.keep([*tokens, 1, 2, 3], 20, fed_cache(model, tokens))
    assert store.take([*tokens, 1, 2, 3]).length == 20
    store.keep(tokens, 21, fed_cache(model, [*tokens, 1]))
    assert len(store) == 0


def test_the_oldest_go_when_the_budget_is_spent(model):
    prompts = [[seed, *random_prompt(seed, 30)] for seed in range(10, 14)]
    caches = [fed_cache(model, prompt) for prompt in prompts]
    one = sum(layer.nbytes for layer in caches[0])
    store = PrefixCache(2 * one)
    for prompt, cache in zip(prompts, caches, strict=True):
        store.keep(prompt, len(prompt), cache)
    assert len(store) == 2
    assert store.nbytes <= 2 * one
    assert store.take([*prompts[0], 1]) == Beginning()
    assert store.take([*prompts[3], 1]).length == len(prompts[3])


def test_without_memory_nothing_is_kept(model):
    store = PrefixCache(0)
    store.keep([1, 2, 3], 3, fed_cache(model, [1, 2, 3]))
    assert len(store) == 0


def test_a_short_tail_is_given_up_and_a_long_one_is_not(model):
    store = PrefixCache(1 << 30)
    text = random_prompt(8, 40)
    cache = fed_cache(model, text)
    store.keep(text, 40, cache)
    assert store.take([*text[:36], 1, 2]).cache is cache
    assert (len(store), store.nbytes) == (0, 0)
    cache = fed_cache(model, text)
    store.keep(text, 40, cache)
    assert store.take([*text[:35], 1, 2]).cache is not cache
    assert len(store) == 1


def test_what_a_longer_one_holds_is_not_kept_twice(model):
    store = PrefixCache(1 << 30)
    text = random_prompt(9, 40)
    store.keep(text, 20, fed_cache(model, text[:20]))
    store.keep(text, 40, fed_cache(model, text))
    store.keep(text, 30, fed_cache(model, text[:30]))
    assert [len(entry.tokens) for entry in store.newest_first()] == [40]
    assert store.nbytes == sum(entry.nbytes for entry in store.newest_first())


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(2, 60), st.booleans()), max_size=12))
def test_its_bytes_stay_within_the_budget_and_add_up(model, history):
    store = PrefixCache(3 * sum(layer.nbytes for layer in fed_cache(model, [1])))
    texts = [random_prompt(seed, 60) for seed in range(3)]
    for which, length, is_taken in history:
        if is_taken:
            found = store.take(texts[which][:length])
            assert found.length < length
        else:
            store.keep(texts[which], length, fed_cache(model, texts[which][:length]))
        assert store.nbytes == sum(entry.nbytes for entry in store.newest_first()) <= store.budget


def second_turn(model, sequence: Sequence) -> None:
    """Keep what a sequence left, go on from it with a drafter that is often wrong, and compare with a fresh one."""
    store = PrefixCache(1 << 30)
    store.keep(sequence.tokens, sequence.fed, sequence.cache)
    turn = [*sequence.tokens, *random_prompt(3, 5)]
    found = store.take(turn)
    assert found.length == sequence.fed >= len(sequence.tokens) - 1
    expected = reference(model, turn, 16)
    again = Sequence(model, found.cache, Chooser(Sampling(temperature=0)), list(turn), found.length)
    again.forward(mx.array(turn[found.length : -1]))
    list(cycles(again, [*turn, *expected], 16, error=0.3))
    assert_same_up_to_ties(model, turn, expected, again.tokens[len(turn) :])


def cycles(sequence: Sequence, truth: list[int], count: int, stop: int | None = None, error: float = 0.0):
    drafter, stops = OracleDrafter(truth, error), frozenset() if stop is None else frozenset({stop})
    return decode(sequence, count, stops, drafter=drafter, policy=ScriptedPolicy([7]), spend=lambda *_: None)


@pytest.mark.parametrize("index", range(16))
def test_a_turn_after_a_stop_token_inside_an_accepted_block_equals_a_fresh_one(model, index):
    prompt = random_prompt(2)
    expected = reference(model, prompt, 16)
    sequence = Sequence(model, fed_cache(model, prompt[:-1]), Chooser(Sampling(temperature=0)), list(prompt), 23)
    steps = list(cycles(sequence, [*prompt, *expected], 16, stop=expected[index]))
    assert steps[-1].tokens[-1] == expected[index]
    second_turn(model, sequence)


@pytest.mark.parametrize("steps", range(1, 4))
def test_a_turn_after_a_cancel_between_blocks_equals_a_fresh_one(model, steps):
    prompt = random_prompt(2)
    expected = reference(model, prompt, 40)
    sequence = Sequence(model, fed_cache(model, prompt[:-1]), Chooser(Sampling(temperature=0)), list(prompt), 23)
    running = cycles(sequence, [*prompt, *expected], 40, error=0.2)
    for _ in range(steps):
        next(running)
    running.close()
    second_turn(model, sequence)
