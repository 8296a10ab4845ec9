"""Taps see what the layers give, position by position, and nothing of what was taken back."""

from __future__ import annotations

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache
from tiny_model import random_prompt, tiny_model

from engine.taps import COMPACT_EVERY, Taps


@pytest.fixture
def model():
    return tiny_model()


def all_states(taps: Taps, end: int) -> mx.array:
    return mx.concatenate([states for _, states in taps.pieces(0, end)])


def feed(model, taps: Taps, cache, tokens: list[int], start: int) -> None:
    taps.forward(lambda: model(mx.array([tokens]), cache=cache), start)


def test_step_by_step_they_keep_what_one_pass_gives(model):
    tokens = random_prompt(1, COMPACT_EVERY * 2 + 9)
    taps, cache = Taps(model, [0, 1]), make_prompt_cache(model)
    for position, token in enumerate(tokens):
        feed(model, taps, cache, [token], position)
    stepwise = all_states(taps, len(tokens))
    taps.clear()
    feed(model, taps, make_prompt_cache(model), tokens, 0)
    assert stepwise.shape == (len(tokens), 64)
    assert mx.abs(stepwise - all_states(taps, len(tokens))).max().item() < 1e-3


def test_what_is_fed_again_replaces_what_was_rejected(model):
    tokens, other = random_prompt(2, 20), random_prompt(3, 5)
    taps, cache = Taps(model, [1]), make_prompt_cache(model)
    feed(model, taps, cache, tokens, 0)
    for layer in cache:
        layer.trim(8)
    feed(model, taps, cache, other, 12)
    kept = all_states(taps, 17)
    taps.clear()
    feed(model, taps, make_prompt_cache(model), tokens[:12] + other, 0)
    assert mx.abs(kept - all_states(taps, 17)).max().item() < 1e-3


def test_only_the_newest_positions_and_the_first_are_kept(model):
    taps, cache = Taps(model, [0], most=16, sink=3), make_prompt_cache(model)
    for position, token in enumerate(random_prompt(4, 4 * COMPACT_EVERY)):
        feed(model, taps, cache, [token], position)
    end = 4 * COMPACT_EVERY
    assert [(begin, states.shape[0]) for begin, states in taps.pieces(0, end)] == [(0, 3), (end - 16, 16)]


def test_nothing_is_noted_outside_of_a_tapped_pass_and_the_model_gives_the_same(model):
    tokens = mx.array([random_prompt(5)])
    before = model(tokens)
    taps = Taps(model, [0, 1])
    assert mx.array_equal(model(tokens), before)
    assert taps.positions == 0
    assert not taps._noted  # arrays held here would never be freed


def test_a_layer_can_be_tapped_twice_and_only_the_last_tap_notes(model):
    first, second = Taps(model, [0]), Taps(model, [0])
    second.forward(lambda: model(mx.array([[1, 2]])), 0)
    assert (first.positions, second.positions) == (0, 2)


def test_layers_that_are_not_there_are_refused(model):
    with pytest.raises(ValueError, match="not among the model's 2"):
        Taps(model, [0, 2])
