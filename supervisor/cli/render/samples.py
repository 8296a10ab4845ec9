"""A canary run in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from supervisor.cli.render.layout import painted
from supervisor.core.words import length, rate


def sample_in_words(sample: Mapping[str, Any]) -> Text:
    """``46.3 tok/s over 64 tokens after a prompt of 256, first token after 0.2 s``, or why it does not count."""
    if sample.get("void"):
        detail = f" ({sample['detail']})" if sample.get("detail") else ""
        return Text(f"the run does not count: {str(sample['void']).replace('_', ' ')}{detail}", style="warn")
    text = painted(f"{rate(sample.get('decode_tok_s'))} tok/s", "name")
    if sample.get("tokens"):
        text.append(f" over {sample['tokens']} tokens")
    if sample.get("prompt_tokens"):
        text.append(f" after a prompt of {sample['prompt_tokens']}")
    if sample.get("ttft_s") is not None:
        text.append(f", first token after {length(sample['ttft_s'])}")
    return text
