"""mlx_lm.server, of mlx-lm."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HERE, HealthRule, Preset
from supervisor.readings.mlx_lm import MlxLmLog

MLX_LM: Final = Preset(
    name="mlx-lm",
    title="mlx_lm.server",
    tested="0.32.2 run on Linux: slowed, judged, drained, stopped and replaced under a streaming client",
    fills={
        "command": ["mlx_lm.server", "--model", "{model}", *HERE],
        "served_model": "default_model",
        "stop_signal": "INT",
    },
    usual_port=8080,
    health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"unavailable"})),
    is_lazy=True,
    log=MlxLmLog,
    reasoning_field="reasoning",
    traps=(
        "Any model name but `default_model` (or its `--model`, word for word) is an order to load that model instead.",
        "SIGTERM kills it at once; SIGINT is its clean stop.",
        "It is healthy before its model is loaded; only a first token tells.",
        'A health of 503 `{"status": "unavailable"}` is for ever: its thread that generates is dead.',
        "A request with a `seed` is not batched, and waits until the batch is empty: canaries send none.",
        "It tells no rate of decoding: its log has how far prompts are, and the size of its prompt cache.",
        "`/v1/models` lists what the hub's cache folder holds, and breaks where there is no such folder.",
        "Its streams end with the connection (HTTP/1.0): only `[DONE]` says that one is whole.",
    ),
)
