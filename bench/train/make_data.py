"""Let the target write what the draft network will learn: its own output, in many rows at once.

    python -m bench.train.make_data TARGET_FOLDER OUT_FOLDER [--seconds 150] [--rows 1024] [--length 640] [--seed 1]

Each row begins with a prompt; when an answer ends, the model makes up the next user's turn and answers it. Half of the
answers are greedy, half at T = 0.7; user's turns at T = 0.8. Written: `tokens` [rows, length] and `mask` (1 where the
token is part of an answer), one file a batch.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import KVCache
from mlx_lm.tokenizer_utils import load as load_tokenizer
from mlx_lm.utils import load_model

from bench.train.prompts import DOMAINS, prompt

SHARES = (0.22, 0.22, 0.12, 0.16, 0.08, 0.20)
"""Of the rows, by domain."""
ANSWER, ASK = 0, 5
"""States in which the model writes freely; those between are fixed tokens."""
ASK_HEAT = 0.8


def rows_of(tokenizer: Any, longest: int, seed: int, domains: list[str]) -> tuple[list[list[int]], list[int]]:
    """Prompts as tokens, of at most `longest` each, and the state in which each ends."""
    dice = random.Random(seed)
    rows, states = [], []
    while len(rows) < len(domains):
        domain = domains[len(rows)]
        text = prompt(domain, dice)
        messages = [{"role": "user", "content": text}]
        tokens = list(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True))
        if domain == "free":
            user = tokenizer.encode("user\n", add_special_tokens=False)
            end = next(i for i in range(len(tokens)) if tokens[i : i + len(user)] == user) + len(user)
            tokens = tokens[:end]
        if len(tokens) <= longest:
            rows.append(tokens)
            states.append(ASK if domain == "free" else ANSWER)
    return rows, states


class Writer:
    """Writes a batch of rows, one token a step, with prompts of unequal lengths fed as they go."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model = model
        one = lambda text: tokenizer.encode(text, add_special_tokens=False)  # noqa: E731
        [self._end], [end_of_text] = one("<|im_end|>"), one("<|endoftext|>")
        to_user, to_answer = one("\n<|im_start|>user\n"), one("\n<|im_start|>assistant\n")
        assert 1 + len(to_user) == ASK, to_user
        self._forced = mx.array([-1, *to_user, -1, *to_answer])
        self._end_of_text = end_of_text

    def write(
        self, prompts: list[list[int]], states: list[int], length: int, temperatures: mx.array, seed: int
    ) -> tuple[mx.array, mx.array]:
        """(tokens, mask) [rows, length]."""
        count, shortest = len(prompts), min(map(len, prompts))
        padded = mx.array([row + [0] * (length - len(row)) for row in prompts])
        ends = mx.array([len(row) for row in prompts])
        state = mx.array(states)
        cache = [KVCache() for _ in self._model.layers]
        key = mx.random.key(seed)
        inputs = padded[:, :shortest]
        columns, masks = [inputs], [mx.zeros((count, shortest), mx.uint8)]
        for position in range(shortest, length):
            logits = self._model(inputs, cache=cache)[:, -1].astype(mx.float32)
            key, used = mx.random.split(key)
            heat = mx.where(state == ASK, ASK_HEAT, temperatures)[:, None]
            noisy = logits + heat * mx.random.gumbel(logits.shape, key=used)
            written = mx.argmax(noisy, axis=-1)
            written = mx.where(written == self._end_of_text, self._end, written)
            fixed = self._forced[state]
            is_free, is_prompt = fixed < 0, position < ends
            token = mx.where(is_prompt, padded[:, position], mx.where(is_free, written, fixed))
            masks.append(((state == ANSWER) & ~is_prompt).astype(mx.uint8)[:, None])
            moved = mx.where(is_free & (token != self._end), state, (state + 1) % self._forced.size)
            state = mx.where(is_prompt, state, moved)
            inputs = token[:, None]
            columns.append(inputs)
            mx.async_eval(inputs, state, masks[-1])
            if position % 128 == 0:
                mx.eval(inputs)
        return mx.concatenate(columns, axis=1).astype(mx.int32), mx.concatenate(masks, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=150.0)
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--length", type=int, default=640)
    parser.add_argument("--longest-prompt", type=int, default=330)
    parser.add_argument("--held-out", type=int, default=32, help="rows of each domain kept for the evaluation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    model, _ = load_model(options.target)
    tokenizer = load_tokenizer(options.target)
    options.out.mkdir(parents=True, exist_ok=True)
    writer, began, total = Writer(model, tokenizer), time.monotonic(), 0
    # Greedy rows of each domain, from another seed.
    domains = [domain for domain in DOMAINS for _ in range(options.held_out)]
    prompts, states = rows_of(tokenizer, options.longest_prompt, options.seed + 10_000, domains)
    tokens, mask = writer.write(prompts, states, options.length, mx.zeros(len(prompts)), 0)
    mx.save_safetensors(str(options.out / "held_out.safetensors"), {"tokens": tokens, "mask": mask})
    print(f"held out: {time.monotonic() - began:.1f} s", flush=True)
    number = 0
    while number == 0 or (time.monotonic() - began) * (number + 1) / number < options.seconds:
        seed = options.seed + number
        dice = random.Random(seed)
        domains = dice.choices(DOMAINS, SHARES, k=options.rows)
        prompts, states = rows_of(tokenizer, options.longest_prompt, seed, domains)
        heat = mx.array([dice.choice((0.0, 0.7)) for _ in domains])
        tokens, mask = writer.write(prompts, states, options.length, heat, seed)
        mx.save_safetensors(str(options.out / f"batch-{number:03}.safetensors"), {"tokens": tokens, "mask": mask})
        number, total = number + 1, total + int(mask.sum())
        print(f"batch {number}: {total / 1e6:.2f} M answer tokens, {time.monotonic() - began:.0f} s", flush=True)
    for row in range(6):
        print(repr(tokenizer.decode(tokens[row].tolist())[-300:]), flush=True)


if __name__ == "__main__":
    main()
