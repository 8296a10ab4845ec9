"""Speculation changes speed, never the output."""

from __future__ import annotations

import itertools
from collections import Counter

import mlx.core as mx
import pytest
from mlx_lm.sample_utils import make_logits_processors
from tiny_model import (
    VOCABULARY,
    WIDTHS,
    OracleDrafter,
    ScriptedPolicy,
    assert_same_up_to_ties,
    decoded,
    random_prompt,
    reference,
    tiny_model,
)

from engine.drafters import NoDrafter
from engine.drafters.ngram import NgramDrafter
from engine.request import Sampling

COUNT = 60
PLAIN = ScriptedPolicy([0])


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.mark.parametrize("seed", range(6))
def test_plain_decoding_gives_what_mlx_lm_gives(model, seed):
    prompt = random_prompt(seed)
    expected = reference(model, prompt, COUNT)
    assert_same_up_to_ties(model, prompt, expected, decoded(model, prompt, COUNT, NoDrafter(), PLAIN))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("seed", range(4))
def test_ngram_drafts_of_any_width_give_what_plain_decoding_gives(model, width, seed):
    prompt = random_prompt(seed)
    expected = reference(model, prompt, COUNT)
    got = decoded(model, prompt, COUNT, NgramDrafter(), ScriptedPolicy([width]))
    assert_same_up_to_ties(model, prompt, expected, got)


@pytest.mark.parametrize("seed", range(12))
def test_random_schedules_of_draft_lengths_give_what_plain_decoding_gives(model, seed):
    prompt = random_prompt(seed)
    expected = reference(model, prompt, COUNT)
    got = decoded(model, prompt, COUNT, NgramDrafter(), ScriptedPolicy(WIDTHS, seed))
    assert_same_up_to_ties(model, prompt, expected, got)


@pytest.mark.parametrize("error", [0.0, 0.3, 1.0], ids=["always right", "random", "always wrong"])
@pytest.mark.parametrize("width", [1, 3, 15])
def test_adversarial_drafters_change_nothing(model, error, width):
    prompt = random_prompt(7)
    expected = reference(model, prompt, COUNT)
    policy = ScriptedPolicy([width])
    got = decoded(model, prompt, COUNT, OracleDrafter(prompt + expected, error), policy)
    assert_same_up_to_ties(model, prompt, expected, got)
    drafted, accepted = map(sum, zip(*policy.cycles, strict=True))
    assert accepted == (drafted if error == 0 else 0) or error == 0.3


@pytest.mark.parametrize("stop_at", range(1, 24, 3))
def test_a_stop_token_ends_the_output_wherever_it_falls_in_a_block(model, stop_at):
    prompt = random_prompt(3)
    expected = reference(model, prompt, COUNT)
    stop = expected[stop_at]
    until_stop = expected[: expected.index(stop) + 1]
    drafter = OracleDrafter(prompt + expected, 0.0)
    assert decoded(model, prompt, COUNT, drafter, ScriptedPolicy([7]), stops=frozenset({stop})) == until_stop


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 17])
def test_no_more_tokens_come_than_were_asked_for(model, count):
    prompt = random_prompt(2)
    expected = reference(model, prompt, count)
    got = decoded(model, prompt, count, OracleDrafter(prompt + expected + [0] * 20, 0.0), ScriptedPolicy([15]))
    assert_same_up_to_ties(model, prompt, expected, got)


PENALTIES = {
    "repetition": (Sampling(0, repetition_penalty=1.4), {"repetition_penalty": 1.4}),
    "presence": (Sampling(0, presence_penalty=0.9), {"presence_penalty": 0.9}),
    "frequency": (Sampling(0, frequency_penalty=0.7), {"frequency_penalty": 0.7}),
    "bias": (Sampling(0, logit_bias={3: 2.5, 5: -100.0}), {"logit_bias": {3: 2.5, 5: -100.0}}),
    "all": (
        Sampling(0, repetition_penalty=1.2, presence_penalty=0.5, frequency_penalty=0.2, logit_bias={1: 1.0}),
        {"repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.2, "logit_bias": {1: 1.0}},
    ),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("widths", [(0,), (3,), WIDTHS], ids=["plain", "three", "random"])
def test_penalties_and_biases_see_the_same_tokens_in_a_block_as_one_by_one(model, name, widths):
    sampling, options = PENALTIES[name]
    for seed in range(3):
        prompt = random_prompt(seed)
        expected = reference(model, prompt, COUNT, logits_processors=make_logits_processors(**options))
        drafter = OracleDrafter(prompt + expected, 0.3, seed)
        assert decoded(model, prompt, COUNT, drafter, ScriptedPolicy(widths, seed), sampling=sampling) == expected


@pytest.mark.parametrize(
    "sampling",
    [Sampling(1.0, seed=5), Sampling(0.7, seed=5, top_p=0.9), Sampling(1.3, seed=5, top_k=12, min_p=0.02)],
    ids=["plain", "top-p", "top-k and min-p"],
)
def test_a_seed_gives_the_same_sample_with_and_without_speculation(model, sampling):
    for seed in range(4):
        prompt = random_prompt(seed)
        expected = decoded(model, prompt, COUNT, NoDrafter(), PLAIN, sampling=sampling)
        drafter = OracleDrafter(prompt + expected, 0.4, seed)
        assert decoded(model, prompt, COUNT, drafter, ScriptedPolicy(WIDTHS, seed), sampling=sampling) == expected
    assert decoded(model, prompt, COUNT, NoDrafter(), PLAIN, sampling=Sampling(1.0, seed=6)) != expected


@pytest.mark.slow
@pytest.mark.parametrize("sampling", [{"temperature": 1.0}, {"temperature": 0.7, "top_k": 4}], ids=["t1", "t0.7 top-k"])
def test_speculative_samples_are_distributed_as_the_model_says(model, sampling):
    prompt = random_prompt(1, 6)
    expected = _exact_pairs(model, prompt, **sampling)
    likeliest = max(expected, key=lambda pair: expected[pair])
    draws = 1500
    drafter = OracleDrafter(prompt + list(likeliest), 0.0)
    seen = Counter(
        tuple(decoded(model, prompt, 2, drafter, ScriptedPolicy([1]), sampling=Sampling(**sampling, seed=seed)))
        for seed in range(draws)
    )
    assert set(seen) <= {pair for pair, chance in expected.items() if chance > 0}
    cells = [(seen[pair], chance * draws) for pair, chance in expected.items() if chance * draws >= 5]
    rest_seen, rest = draws - sum(s for s, _ in cells), draws - sum(e for _, e in cells)
    statistic = sum((s - e) ** 2 / e for s, e in cells) + ((rest_seen - rest) ** 2 / rest if rest > 1 else 0)
    freedom = len(cells)
    assert statistic < freedom + 4 * (2 * freedom) ** 0.5


def _exact_pairs(model, prompt, temperature: float, top_k: int = VOCABULARY) -> dict[tuple[int, int], float]:
    def chances(tokens: list[int]) -> list[float]:
        logits = model(mx.array([tokens]))[0, -1].tolist()
        allowed = sorted(range(VOCABULARY), key=lambda token: -logits[token])[:top_k]
        masked = mx.array([logits[token] / temperature if token in allowed else -1e9 for token in range(VOCABULARY)])
        return mx.softmax(masked).tolist()

    first = chances(prompt)
    seconds = [chances([*prompt, token]) if first[token] > 1e-6 else [0.0] * VOCABULARY for token in range(VOCABULARY)]
    return {(a, b): first[a] * seconds[a][b] for a, b in itertools.product(range(VOCABULARY), repeat=2)}
