"""Log lines as known servers write them, about what this worker really does."""

from __future__ import annotations

import os

from tests.fake_worker.knobs import Knobs

PROGRESS_EVERY_S = 0.5


def tell_prompt(knobs: Knobs, share: float, tokens: int) -> None:
    """How much of a prompt has been read."""
    if knobs.dialect == "mlx-lm":
        _say(f"2026-12-01 13:40:09,172 - INFO - Prompt processing progress: {round(share * tokens)}/{tokens}")


def tell_answer(knobs: Knobs, tokens: int, steps: float, seconds: float, prompt_tokens: int) -> None:
    """An answer has ended: these many tokens of it came from so many steps."""
    cycles = max(1, round(steps))
    if knobs.dialect == "omlx" and tokens:
        _say(
            f"2026-12-01 13:40:09,172 - omlx.scheduler - INFO - MTP[1] finish=length tokens={tokens} cycles={cycles} "
            f"tok/cycle={tokens / steps:.2f} accept={tokens - cycles}/{4 * cycles} (50.0%) "
            f"timing[backbone={seconds * 900:.1f}ms mtp={seconds * 100:.1f}ms sample=0.1ms cache=0.1ms]"
        )
    elif knobs.dialect == "freetoken" and tokens:
        _say(f"\x1b[32m[2026-12-01|13:40:09|core|rank=0] Prefill batch, #new-token: {prompt_tokens}, #cached-token: 0")
        rate = tokens / seconds if seconds else 0.0
        for _ in range(2):
            _say(
                f"[2026-12-01|13:40:09|core|rank=0] Decode batch, #running-req: 1, #token: {prompt_tokens}, "
                f"gen throughput (token/s): {rate:.2f}, #queue-req: 0\x1b[0m"
            )


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")
