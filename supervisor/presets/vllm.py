"""vLLM."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HERE, NAMED, NativeRemedy, Preset, Stats
from supervisor.readings.vllm import vllm_metrics

VLLM: Final = Preset(
    name="vllm",
    title="vLLM",
    tested="0.19.1 read in its wheel, its `/metrics` by a text composed of its names; not run",
    fills={
        "command": ["vllm", "serve", "{model}", *NAMED, *HERE],
        # It fills its device's memory, so a second one does not fit beside it.
        "replace": "in_place",
    },
    usual_port=8000,
    stats=Stats("/metrics", vllm_metrics),
    # It has this path only with VLLM_SERVER_DEV_MODE=1.
    remedies={"drop_prefix_cache": NativeRemedy("/reset_prefix_cache")},
    thinking_off='`chat_template_kwargs: {"enable_thinking": false}` or `reasoning_effort: "none"`, a request',
    reasoning_field="reasoning",
    traps=(
        "Its health is an empty 200; 503 means that its engine is dead.",
        "Its prefix cache can be reset only with `VLLM_SERVER_DEV_MODE=1` in its environment.",
    ),
)
