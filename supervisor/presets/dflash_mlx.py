"""dflash-mlx, a server built on that of mlx-lm."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HERE, HealthRule, Preset, Stats
from supervisor.readings.dflash_mlx import dflash_metrics

DFLASH_MLX: Final = Preset(
    name="dflash-mlx",
    title="dflash-mlx",
    tested="0.1.8 read in its wheel, its `/metrics` by a document composed of its keys; not run",
    fills={
        "command": ["dflash", "serve", "--model", "{model}", *HERE],
        "served_model": "default_model",
        "stop_signal": "INT",
    },
    usual_port=8000,
    health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"unavailable"})),
    stats=Stats("/metrics", dflash_metrics),
    thinking_off='`chat_template_kwargs: {"enable_thinking": false}`, a request; or `--chat-template-args`',
    traps=(
        "`/metrics` is JSON, not Prometheus.",
        "0.1.8 cannot be imported beside mlx-lm 0.32: it needs an environment of its own, and `command` its full path.",
        "Versions about 0.1.5 decode up to `--fastpath-max-tokens` (256) without drafts: "
        "a canary of 64 tokens then measures what no long answer uses.",
        "What mlx_lm.server does with model names, signals and health, it does too.",
    ),
)
