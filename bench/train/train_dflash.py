"""Train DFlash-mini on the target's own output; checkpoints, and resumes where the last slice ended.

    python -m bench.train.train_dflash TARGET DATA OUT --budget 900 --slice 540 [--batch 16] [--anchors 256] [--lr 1e-3]

`--budget` is the training time in all, which the learning rate follows (so steps depend on the device); `--slice` is
how long this call may train. OUT holds `resume.safetensors` (weights in float32 and Adam's moments) and, after each
slice, the checkpoint itself in bf16: `model.safetensors`, `config.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx import optimizers
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.utils import load_model

from bench.train.blocks import denoised, rope_tables
from engine.drafters.dflash_model import DFlashArgs, DFlashModel
from engine.taps import Taps

BLOCK, LAYERS, MASK, VOCABULARY = 8, 2, 16, 8192
TAPS = (1, 14, 27)
DECAY = 4.0
WARMUP_S = 10.0
SEED = 7


def config_of(target: dict[str, Any], taps: tuple[int, ...], vocabulary: int) -> dict[str, Any]:
    """The draft's config: z-lab's keys, and how many tokens its head knows."""
    same = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "rms_norm_eps")
    return {
        "architectures": ["DFlashDraftModel"],
        "model_type": "qwen3",
        **{key: target[key] for key in (*same, "rope_theta", "max_position_embeddings", "vocab_size")},
        "head_dim": target["hidden_size"] // target["num_attention_heads"],
        "num_hidden_layers": LAYERS,
        "block_size": BLOCK,
        "draft_vocab_size": vocabulary,
        "dflash_config": {"target_layer_ids": list(taps), "mask_token_id": MASK},
    }


class Teacher:
    """The target: states, embeddings, and logits over the shortlist."""

    def __init__(self, target: Any, taps: tuple[int, ...], shortlist: mx.array) -> None:
        self._target = target
        self._taps = Taps(target, list(taps))
        self.embed = target.model.embed_tokens
        self.head = self.embed(shortlist)

    def read(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """(states [B, S, taps x width], final hidden [B, S, width]) of tokens [B, S]."""
        noted = self._taps.observe(lambda: self._target.model(tokens))
        return mx.concatenate(noted[1], axis=-1), noted[0]


class Data:
    """All batches in memory; random rows, random anchors within answers."""

    def __init__(self, folder: Path) -> None:
        files = [mx.load(str(file)) for file in sorted(folder.glob("batch-*.safetensors"))]
        self.tokens = mx.concatenate([file["tokens"] for file in files])
        self.mask = mx.concatenate([file["mask"] for file in files])
        mx.eval(self.tokens, self.mask)

    def shortlist(self, size: int, vocabulary: int) -> mx.array:
        """The token ids that answers use most, in ascending order."""
        picked = mx.where(self.mask > 0, self.tokens, vocabulary).reshape(-1)
        counts = mx.zeros(vocabulary + 1, mx.int32).at[picked].add(1)[:vocabulary]
        return mx.sort(mx.argsort(-counts)[:size]).astype(mx.int32)

    def draw(self, rows: int, anchors: int, key: mx.array) -> tuple[mx.array, mx.array]:
        """(tokens [rows, S], anchors [rows, anchors]): the token after an anchor is part of an answer."""
        first, second = mx.random.split(key)
        picked = mx.random.randint(0, self.tokens.shape[0], (rows,), key=first)
        tokens, mask = self.tokens[picked], self.mask[picked]
        length = tokens.shape[1]
        noise = mx.random.uniform(shape=(rows, length - BLOCK), key=second)
        noise = noise * mask[:, 1 : length - BLOCK + 1]
        return tokens, mx.argsort(-noise, axis=-1)[:, :anchors]


def loss_of(
    weights: Any, model: DFlashModel, batch: dict[str, mx.array], tables: Any, head: mx.array
) -> tuple[mx.array, mx.array]:
    """(loss, hits by position [BLOCK - 1]): KL to the target over the shortlist, and cross entropy with its token."""
    model.update(tree_map(lambda weight: weight.astype(head.dtype), weights))
    hidden = denoised(model, batch["states"], batch["embeddings"], batch["anchors"], tables)[:, :, 1:]
    logits = (hidden @ head.T).astype(mx.float32)
    logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    taught = mx.softmax((batch["taught"] @ head.T).astype(mx.float32), axis=-1)
    soft = -(taught * logprobs).sum(axis=-1)
    label = batch["labels"]
    is_listed = label >= 0
    hard = -mx.take_along_axis(logprobs, mx.maximum(label, 0)[..., None], axis=-1)[..., 0]
    each = (0.5 * soft + 0.5 * hard) * is_listed
    scale = mx.exp(-mx.arange(BLOCK - 1) / DECAY)
    loss = (each * scale).sum() / (is_listed * scale).sum()
    hits = ((mx.argmax(logits, axis=-1) == label) & is_listed).astype(mx.float32).mean(axis=(0, 1))
    return loss, hits


def batch_of(teacher: Teacher, tokens: mx.array, anchors: mx.array, listed: mx.array) -> dict[str, mx.array]:
    """What the loss needs of one draw; `listed` [vocabulary]: the row of the shortlist, or -1."""
    states, final = teacher.read(tokens)
    rows, count = anchors.shape
    places = anchors[:, :, None] + mx.arange(1, BLOCK)
    labels = mx.take_along_axis(tokens, places.reshape(rows, -1), axis=1).reshape(rows, count, BLOCK - 1)
    before = (places - 1).reshape(rows, -1)
    taught = mx.take_along_axis(final, before[..., None], axis=1).reshape(rows, count, BLOCK - 1, -1)
    last = mx.take_along_axis(tokens, anchors, axis=1)[..., None]
    inputs = mx.concatenate([last, mx.full((rows, count, BLOCK - 1), MASK, last.dtype)], axis=-1)
    return {
        "states": states,
        "embeddings": teacher.embed(inputs),
        "anchors": anchors,
        "taught": taught,
        "labels": listed[labels],
    }


def fresh_weights(model: DFlashModel, target: Any) -> Any:
    """Small random matrices; features begin as the last tap, the last norm as the target's, which its head expects."""
    key = mx.random.key(SEED)
    weights = []
    for name, weight in tree_flatten(model.parameters()):
        key, used = mx.random.split(key)
        if weight.ndim == 2:
            deep = name.endswith(("o_proj.weight", "down_proj.weight"))
            fresh = mx.random.normal(weight.shape, key=used) * (0.01 if deep else 0.03)
        else:
            fresh = weight
        weights.append((name, fresh.astype(mx.float32)))
    named = dict(weights)
    width = model.args.hidden_size
    named["fc.weight"] = 0.02 * named["fc.weight"]
    named["fc.weight"][:, -width:] += mx.eye(width)
    named["norm.weight"] = target.model.norm.weight.astype(mx.float32)
    return tree_unflatten(list(named.items()))


def save(folder: Path, weights: Any, shortlist: mx.array, config: dict[str, Any]) -> None:
    """The checkpoint as engine.drafters.dflash loads it."""
    named = {name: weight.astype(mx.bfloat16) for name, weight in tree_flatten(weights)}
    named["d2t"] = (shortlist - mx.arange(shortlist.size)).astype(mx.int32)
    mx.save_safetensors(str(folder / "model.safetensors"), named, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=2))


def begun(resume: Path, optimizer: Any, model: DFlashModel, target: Any) -> tuple[Any, int, float]:
    """(weights, steps done, seconds spent), and the optimizer's state: as the last slice left them, or fresh."""
    if not resume.is_file():
        weights = fresh_weights(model, target)
        optimizer.init(weights)
        return weights, 0, 0.0
    kept = mx.load(str(resume))
    step, spent = int(kept.pop("step").item()), float(kept.pop("spent").item())
    weights = tree_unflatten([(name[2:], value) for name, value in kept.items() if name.startswith("w.")])
    optimizer.state = tree_unflatten([(name[2:], value) for name, value in kept.items() if name.startswith("o.")])
    return weights, step, spent


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "data", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--slice", type=float, required=True)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--anchors", type=int, default=256)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--taps", type=int, nargs="+", default=list(TAPS))
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    return parser.parse_args()


def main() -> None:
    options = _parsed()
    began = time.monotonic()
    target, target_config = load_model(options.target)
    target.freeze()
    data = Data(options.data)
    known = target_config["vocab_size"]
    shortlist = data.shortlist(min(options.vocabulary, known), known)
    listed = mx.full(known, -1, mx.int32)
    listed[shortlist] = mx.arange(shortlist.size, dtype=mx.int32)
    config = config_of(target_config, tuple(options.taps), shortlist.size)
    model = DFlashModel(DFlashArgs.from_config(config))
    teacher = Teacher(target, tuple(options.taps), shortlist)
    args = model.args
    tables = rope_tables(args.head_dim, args.rope_theta, data.tokens.shape[1] + BLOCK)
    optimizer = optimizers.AdamW(learning_rate=0.0, betas=[0.9, 0.95], weight_decay=0.01)
    options.out.mkdir(parents=True, exist_ok=True)
    resume = options.out / "resume.safetensors"
    weights, step, spent = begun(resume, optimizer, model, target)
    count = sum(weight.size for _, weight in tree_flatten(weights))
    covered = float(((listed[data.tokens] >= 0) & (data.mask > 0)).sum() / data.mask.sum())
    print(f"{count / 1e6:.2f} M weights, {data.tokens.shape[0]} rows, shortlist covers {covered:.4f}", flush=True)
    both = mx.value_and_grad(partial(loss_of, model=model, tables=tables, head=teacher.head), argnums=0)
    running: list[mx.array] = []
    while True:
        now = spent + time.monotonic() - began
        if now >= options.budget or time.monotonic() - began >= options.slice:
            break
        warm = min(1.0, (now + 0.1) / WARMUP_S)
        optimizer.learning_rate = (
            options.lr * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * now / options.budget)))
        )
        tokens, anchors = data.draw(options.batch, options.anchors, mx.random.key(SEED * 1_000_003 + step))
        batch = batch_of(teacher, tokens, anchors, listed)
        (loss, hits), gradients = both(weights, batch=batch)
        gradients, _ = optimizers.clip_grad_norm(gradients, 1.0)
        weights = optimizer.apply_gradients(gradients, weights)
        mx.eval(weights, optimizer.state, loss, hits)
        running.append(mx.concatenate([loss[None], hits]))
        step += 1
        if step % 200 == 0 or step in (1, 10, 50):
            means = mx.stack(running).mean(axis=0).tolist()
            running.clear()
            shown = " ".join(f"{value:.3f}" for value in means)
            print(f"step {step} at {now:.0f} s: loss, hits by position {shown}", flush=True)
    spent += time.monotonic() - began
    state = {f"w.{name}": value for name, value in tree_flatten(weights)}
    state |= {f"o.{name}": value for name, value in tree_flatten(optimizer.state)}
    mx.save_safetensors(str(resume), {**state, "step": mx.array(step), "spent": mx.array(spent)})
    save(options.out, weights, shortlist, config)
    print(f"saved after {step} steps, {spent:.0f} s; peak {mx.get_peak_memory() / 1e9:.1f} GB", flush=True)


if __name__ == "__main__":
    main()
