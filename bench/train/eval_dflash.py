"""How many drafted tokens the target accepts, by position and domain, on greedy answers that were held out.

    python -m bench.train.eval_dflash TARGET DATA CHECKPOINT --json PATH

A cycle starts at the first token of an answer and goes on behind what was accepted, as decoding does.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model

from bench.train.blocks import denoised, rope_tables
from bench.train.prompts import DOMAINS
from bench.train.train_dflash import Teacher
from engine.drafters.dflash_model import DFlashArgs, DFlashModel

ROWS = 4


def matches_of(model: DFlashModel, teacher: Teacher, tokens: mx.array, shortlist: mx.array) -> Any:
    """[rows, S - block, block - 1]: whether the token drafted for each position behind each anchor is right."""
    block, mask = model.args.block_size, model.args.mask_token_id
    rows, length = tokens.shape
    states, _ = teacher.read(tokens)
    count = length - block
    anchors = mx.broadcast_to(mx.arange(count)[None], (rows, count))
    inputs = mx.concatenate([tokens[:, :count, None], mx.full((rows, count, block - 1), mask, tokens.dtype)], axis=-1)
    tables = rope_tables(model.args.head_dim, model.args.rope_theta, length + block)
    hidden = denoised(model, states, teacher.embed(inputs), anchors, tables)[:, :, 1:]
    guesses = shortlist[mx.argmax(hidden @ teacher.head.T, axis=-1)]
    places = anchors[:, :, None] + mx.arange(1, block)
    truth = mx.take_along_axis(tokens, places.reshape(rows, -1), axis=1).reshape(guesses.shape)
    return np.array(guesses == truth)


def walk(matches: Any, mask: Any) -> list[int]:
    """Accepted tokens of each cycle over the answers of one row."""
    accepted, at = [], 0
    while at < matches.shape[0]:
        if not mask[at + 1]:
            at += 1
            continue
        right = int(np.argmin(matches[at])) if not matches[at].all() else matches.shape[1]
        accepted.append(right)
        at += right + 1
    return accepted


def report_of(accepted: list[int], block: int) -> dict[str, Any]:
    """Tokens a cycle, and acceptance by position given that those before it were accepted."""
    reached = [sum(a >= j for a in accepted) for j in range(block)]
    rates = [round(reached[j + 1] / reached[j], 4) if reached[j] else None for j in range(block - 1)]
    return {
        "cycles": len(accepted),
        "tokens_per_cycle": round(1 + sum(accepted) / max(1, len(accepted)), 3),
        "accepted_by_position": rates,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "data", "checkpoint"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    target, _ = load_model(options.target)
    args = DFlashArgs.from_config(json.loads((options.checkpoint / "config.json").read_text()))
    weights = mx.load(str(options.checkpoint / "model.safetensors"))
    offsets = weights.pop("d2t")
    shortlist = offsets + mx.arange(offsets.size)
    model = DFlashModel(args)
    model.load_weights(list(weights.items()))
    teacher = Teacher(target, args.target_layer_ids, shortlist)
    model.set_dtype(teacher.head.dtype)
    data = mx.load(str(options.data / "held_out.safetensors"))
    tokens, mask = data["tokens"], np.array(data["mask"])
    each = tokens.shape[0] // len(DOMAINS)
    cycles: dict[str, list[int]] = {domain: [] for domain in DOMAINS}
    for first in range(0, tokens.shape[0], ROWS):
        matches = matches_of(model, teacher, tokens[first : first + ROWS], shortlist)
        for row in range(matches.shape[0]):
            cycles[DOMAINS[(first + row) // each]] += walk(matches[row], mask[first + row])
    result = {domain: report_of(accepted, args.block_size) for domain, accepted in cycles.items()}
    result["all"] = report_of([a for accepted in cycles.values() for a in accepted], args.block_size)
    for domain, report in result.items():
        print(domain, json.dumps(report), flush=True)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
