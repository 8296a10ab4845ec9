"""oMLX."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HealthRule, Preset, Stats
from supervisor.readings.omlx import OmlxLog, omlx_status

OMLX: Final = Preset(
    name="omlx",
    title="oMLX",
    tested="read in sources partly of the 0.3 line; its log by recorded lines; not run",
    fills={
        "command": ["omlx", "serve"],
        "env": {"OMLX_HOST": "127.0.0.1", "OMLX_PORT": "{port}"},
        # Two of them on one base folder tear its settings file.
        "replace": "in_place",
        "watch_files": ["~/.omlx/model_settings.json"],
    },
    usual_port=8000,
    health=HealthRule(ready=frozenset({"healthy"})),
    is_lazy=True,
    log=OmlxLog,
    stats=Stats("/api/status", omlx_status),
    traps=(
        "It writes command-line flags into the user's `settings.json`, so its port goes in by environment.",
        "Two of them on one base folder tear its settings file: no overlap, and no second lane without `--base-path`.",
        "A fresh `--base-path` has no `model_settings.json`: speculation, thinking and context are then its defaults.",
        "Its model settings act at once from its own page, without a restart: that file is watched.",
        'Thinking stays on in spite of a request where the model\'s `forced_ct_kwargs` hold "enable_thinking".',
        "It is healthy with nothing loaded; the model loads with the first request.",
        "Its `avg_generation_tps` is a mean over its whole life and is not used.",
        "Unloading its model is no mild remedy: the next request waits until it is loaded again.",
        "A teardown of hundreds of gigabytes takes more than a minute.",
    ),
)
