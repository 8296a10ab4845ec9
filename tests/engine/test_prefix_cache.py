"""A prompt that begins like an earlier one decodes as if it were new, from fewer fed tokens."""

from __future__ import annotations

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache
from tiny_model import EOS, assert_same_up_to_ties, random_prompt, reference, tiny_model

from engine.model import LoadedModel
from engine.prefix_cache import PrefixCache
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Sampling
from engine.scheduler import Scheduler


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
    cache, length = store.take(other)
    assert length == 8
    assert {layer.offset for layer in cache} == {8}
    assert store.take([*long, 1])[1] == 40


def test_a_key_is_never_longer_than_what_was_fed(model):
    store = PrefixCache(1 << 30)
    tokens = random_prompt(7, 20)
    store.keep([*tokens, 1, 2, 3], 20, fed_cache(model, tokens))
    assert store.take([*tokens, 1, 2, 3])[1] == 20
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
    assert store.take([*prompts[0], 1]) == (None, 0)
    assert store.take([*prompts[3], 1])[1] == len(prompts[3])


def test_without_memory_nothing_is_kept(model):
    store = PrefixCache(0)
    store.keep([1, 2, 3], 3, fed_cache(model, [1, 2, 3]))
    assert len(store) == 0
