"""The DFlash drafter: its network is what was published, its context follows the target, and it changes no output."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import mlx.core as mx
import numpy as np
import pytest
from mlx import nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.models.cache import make_prompt_cache
from tiny_model import (
    CONFIG,
    WIDTHS,
    ScriptedPolicy,
    assert_same_up_to_ties,
    decoded,
    random_prompt,
    reference,
    tiny_model,
)

from engine.drafters import NoDrafter
from engine.drafters.dflash import DFlashDrafter, TargetEnds
from engine.drafters.dflash_model import DFlashArgs, DFlashModel
from engine.drafters.load import MINI, cast_if_harmless, load_dflash
from engine.drafters.ngram import NgramDrafter
from engine.errors import ModelError
from engine.request import Sampling

COUNT = 40
MASK = 16
ARGS = DFlashArgs(32, 2, 64, 4, 2, 8, 1e-5, 10000.0, 512, 8, (0, 1), MASK)


@pytest.fixture(scope="module")
def target():
    return tiny_model()


def network(seed: int = 3, args: DFlashArgs = ARGS) -> DFlashModel:
    model = DFlashModel(args)
    key = mx.random.key(seed)

    def randomized(weight: mx.array) -> mx.array:
        nonlocal key
        key, used = mx.random.split(key)
        return (1.0 if weight.ndim == 1 else 0.0) + 0.3 * mx.random.normal(weight.shape, key=used)

    model.update(tree_map(randomized, model.parameters()))
    mx.eval(model.parameters())
    return model


def by_the_paper(model: DFlashModel, states: np.ndarray, block: np.ndarray, places: list[int], first: int):
    """The forward pass in numpy, one head and one query at a time; `places`: positions of the context's states."""
    weights = {name: np.array(value, np.float64) for name, value in tree_flatten(model.parameters())}
    args = model.args
    head, groups = args.head_dim, args.num_attention_heads // args.num_key_value_heads

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + args.rms_norm_eps) * weights[name]

    def turn(x, position):
        angles = position * args.rope_theta ** (-np.arange(0, head, 2) / head)
        low, high = x[: head // 2], x[head // 2 :]
        return np.concatenate(
            [low * np.cos(angles) - high * np.sin(angles), high * np.cos(angles) + low * np.sin(angles)]
        )

    context = norm(states @ weights["fc.weight"].T, "hidden_norm.weight")
    x = block
    positions = [*places, *range(first, first + len(block))]
    for layer in range(args.num_hidden_layers):
        name = f"layers.{layer}."
        y = norm(x, name + "input_layernorm.weight")
        both = np.concatenate([context, y])
        keys, values = (
            both @ weights[name + "self_attn.k_proj.weight"].T,
            both @ weights[name + "self_attn.v_proj.weight"].T,
        )
        queries = y @ weights[name + "self_attn.q_proj.weight"].T
        attended = np.zeros_like(queries)
        for h in range(args.num_attention_heads):
            own, shared = slice(h * head, (h + 1) * head), slice(h // groups * head, (h // groups + 1) * head)
            k = np.stack(
                [
                    turn(norm(row, name + "self_attn.k_norm.weight"), p)
                    for row, p in zip(keys[:, shared], positions, strict=True)
                ]
            )
            for row in range(len(block)):
                q = turn(norm(queries[row, own], name + "self_attn.q_norm.weight"), first + row)
                scores = np.exp(k @ q / np.sqrt(head))
                attended[row, own] = scores / scores.sum() @ values[:, shared]
        x = x + attended @ weights[name + "self_attn.o_proj.weight"].T
        y = norm(x, name + "post_attention_layernorm.weight")
        gate, up = y @ weights[name + "mlp.gate_proj.weight"].T, y @ weights[name + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[name + "mlp.down_proj.weight"].T
    return norm(x, "norm.weight")


def drafted_by_the_paper(model, target, tokens: list[int], seen: slice = slice(None)) -> list[int]:
    """The block's tokens from the target's hidden states of all but the last token, or of those `seen`."""
    hidden = target.model.embed_tokens(mx.array([tokens[:-1]]))
    outputs = []
    mask = mx.triu(mx.full((len(tokens) - 1,) * 2, -1e9), 1)
    for layer in target.layers:
        hidden = layer(hidden, mask)
        outputs.append(np.array(hidden[0], np.float64))
    states = np.concatenate([outputs[tap] for tap in model.args.target_layer_ids], axis=-1)
    places = list(range(len(tokens) - 1))
    keep = places[seen] if isinstance(seen, slice) else list(seen)
    embeddings = np.array(target.model.embed_tokens.weight, np.float64)
    block = embeddings[[tokens[-1], *[MASK] * (model.args.block_size - 1)]]
    final = by_the_paper(model, states[keep], block, keep, len(tokens) - 1)
    return (final[1:] @ embeddings.T).argmax(-1).tolist()


def fed(target, drafter: DFlashDrafter, tokens: list[int]) -> None:
    """What decoding does before the first draft: the target is fed all but the last token."""
    drafter.taps.clear()
    drafter.taps.forward(lambda: target(mx.array([tokens[:-1]])), 0)
    drafter.begin(tokens)


def test_the_network_is_the_published_one():
    model = network()
    states = mx.random.normal((11, 64), key=mx.random.key(1))
    block = mx.random.normal((8, 32), key=mx.random.key(2))
    got = model(block[None], model.context(states[None], 0), 11)[0]
    expected = by_the_paper(model, np.array(states, np.float64), np.array(block, np.float64), list(range(11)), 11)
    assert np.abs(np.array(got) - expected).max() < 1e-4


@pytest.mark.parametrize("length", [2, 9, 70])
def test_it_drafts_what_the_description_gives(target, length):
    model = network()
    drafter = DFlashDrafter(target, model)
    prompt = random_prompt(4, length)
    fed(target, drafter, prompt)
    assert list(drafter.propose(7).tokens) == drafted_by_the_paper(model, target, prompt)


def test_a_window_and_a_sink_hide_the_middle_of_the_context(target):
    model = network()
    drafter = DFlashDrafter(target, model, window=6, sink=2)
    prompt = random_prompt(5, 30)
    fed(target, drafter, prompt)
    seen = [0, 1, *range(23, 29)]
    assert list(drafter.propose(7).tokens) == drafted_by_the_paper(model, target, prompt, seen)


def test_a_rejected_draft_leaves_no_trace_in_the_context(target):
    """After cycles with rejections, a draft is the one of a drafter that sees the same text for the first time."""
    drafter, model = None, network()
    drafter = DFlashDrafter(target, model)
    prompt = random_prompt(6)
    policy = ScriptedPolicy([7, 3, 0], 5)
    output = decoded(target, prompt, 25, NoDrafter(), policy, paid=drafter)
    assert any(accepted < tried for tried, accepted in policy.cycles)
    fresh = DFlashDrafter(target, model)
    fed(target, fresh, prompt + output)
    assert drafter.propose(7).tokens == fresh.propose(7).tokens


@pytest.mark.parametrize("width", WIDTHS)
def test_dflash_gives_what_plain_decoding_gives(target, width):
    drafter = DFlashDrafter(target, network())
    for seed in range(2):
        prompt = random_prompt(seed)
        expected = reference(target, prompt, COUNT)
        got = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([width]), paid=drafter)
        assert_same_up_to_ties(target, prompt, expected, got)


@pytest.mark.parametrize("seed", range(3))
def test_random_schedules_with_shadows_windows_and_ngrams_give_the_same(target, seed):
    drafter = DFlashDrafter(target, network(seed), window=8 * seed, sink=seed)
    prompt = random_prompt(seed)
    expected = reference(target, prompt, COUNT)
    got = decoded(target, prompt, COUNT, NgramDrafter(), ScriptedPolicy(WIDTHS, seed, shadows=0.4), paid=drafter)
    assert_same_up_to_ties(target, prompt, expected, got)


def test_a_seed_gives_the_same_sample_under_dflash(target):
    prompt, sampling = random_prompt(7), Sampling(0.8, seed=5, top_k=8)
    expected = decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy([0]), sampling=sampling)
    drafter = DFlashDrafter(target, network())
    assert (
        decoded(target, prompt, COUNT, NoDrafter(), ScriptedPolicy(WIDTHS), sampling=sampling, paid=drafter) == expected
    )


def test_a_shortlist_proposes_only_its_tokens(target):
    shortlist = mx.array([2, 3, 5, 7, 11])
    drafter = DFlashDrafter(target, network(), shortlist=shortlist)
    fed(target, drafter, random_prompt(8))
    assert set(drafter.propose(7).tokens) <= set(shortlist.tolist())


def written(folder: Path, args: DFlashArgs = ARGS, **changes: object) -> Path:
    config = {**CONFIG, "head_dim": args.head_dim, "rope_theta": args.rope_theta, "block_size": args.block_size}
    config["dflash_config"] = {"target_layer_ids": list(args.target_layer_ids), "mask_token_id": MASK}
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(network(args=args).parameters())))
    return folder


def test_a_checkpoint_in_the_published_layout_is_loaded(tmp_path, target):
    drafter = load_dflash(written(tmp_path), target)
    prompt = random_prompt(9)
    fed(target, drafter, prompt)
    assert list(drafter.propose(7).tokens) == drafted_by_the_paper(network(), target, prompt)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dflash_config": {"target_layer_ids": [0, 1]}}, "mask_token_id"),
        ({"dflash_config": {"target_layer_ids": [0, 9], "mask_token_id": 1}}, "reads layer 9"),
        ({"dflash_config": {"target_layer_ids": [0], "mask_token_id": 1}}, "fc.weight"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_by_name(tmp_path, target, changes, message):
    with pytest.raises(ModelError, match=message):
        load_dflash(written(tmp_path, **changes), target)


def test_the_cast_to_fp16_is_undone_where_it_overflows():
    harmless = network()
    harmless.set_dtype(mx.bfloat16)
    assert cast_if_harmless(harmless)
    assert harmless.fc.weight.dtype == mx.float16
    huge = network()
    huge.layers[0].mlp.down_proj.weight = huge.layers[0].mlp.down_proj.weight * 1e6
    huge.set_dtype(mx.bfloat16)
    assert not cast_if_harmless(huge)
    assert huge.fc.weight.dtype == mx.bfloat16


def test_an_untied_quantized_head_serves_a_shortlist():
    head = nn.Linear(64, 48, bias=False).to_quantized(group_size=32, bits=8)
    inner = SimpleNamespace(embed_tokens=nn.Embedding(48, 64))

    class Target(dict):
        lm_head, model = head, inner

    shortlist = mx.array([1, 4, 40])
    x = mx.random.normal((2, 64), key=mx.random.key(1))
    picked = TargetEnds.of(Target(lm_head=head), shortlist).head(x)
    assert mx.abs(picked - head(x)[:, shortlist]).max().item() < 1e-2


def test_the_trained_draft_that_is_shipped_is_whole_and_small():
    files = {file.name: file.stat().st_size for file in MINI.iterdir()}
    assert files.keys() >= {"model.safetensors", "config.json", "MODEL_CARD.md"}
    assert sum(files.values()) <= 17e6
    args = DFlashArgs.from_config(json.loads((MINI / "config.json").read_text()))
    weights = dict(mx.load(str(MINI / "model.safetensors")))
    assert weights.pop("d2t").size == args.draft_vocab_size == 8192
    assert {name: weight.shape for name, weight in weights.items()} == {
        name: weight.shape for name, weight in tree_flatten(DFlashModel(args).parameters())
    }


@pytest.mark.parametrize("way", ["cut", "copied"])
@pytest.mark.parametrize("length", [12, 25, 29])
@pytest.mark.parametrize("is_taken_in", [True, False])
def test_what_it_knew_of_a_beginning_saves_reading_it_again(target, way, length, is_taken_in):
    drafter, text = DFlashDrafter(target, network()), random_prompt(9, 30)
    fed(target, drafter, text)
    if is_taken_in:
        drafter.propose(7)
    memory = drafter.memory(29)
    fed(target, drafter, random_prompt(10))  # another sequence, meanwhile
    if way == "cut":
        memory.cut(length)
    else:
        memory = memory.copied(length)
    turn, cache = [*text[:length], *random_prompt(11, 20)], make_prompt_cache(target)
    target(mx.array([turn[:length]]), cache=cache)
    drafter.recall(memory)
    drafter.taps.forward(lambda: target(mx.array([turn[length:-1]]), cache=cache), length)
    drafter.begin(turn)
    assert list(drafter.propose(7).tokens) == drafted_by_the_paper(drafter._network, target, turn)
