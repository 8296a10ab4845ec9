"""llama-server, of llama.cpp."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HERE, SERVED, HealthRule, NativeRemedy, Preset, Stats
from supervisor.readings.llama_server import llama_metrics

LLAMA_SERVER: Final = Preset(
    name="llama-server",
    title="llama.cpp's llama-server",
    tested="its README (00dc8057), its `/metrics` by a text composed of its names; not run",
    fills={"command": ["llama-server", "-m", "{model}", "--alias", SERVED, *HERE, "--metrics"]},
    usual_port=9931,
    health=HealthRule(ready=frozenset({"ok"})),
    stats=Stats("/metrics", llama_metrics),
    # It refuses this (501) unless it was started with --slot-save-path.
    remedies={"drop_prefix_cache": NativeRemedy("/slots/{id}?action=erase", of_each="/slots")},
    thinking_off='`chat_template_kwargs: {"enable_thinking": false}`, a request; or `--reasoning off`',
    traps=(
        "Its usual port was 8080 up to 2026, and is 9931 now.",
        "`/metrics` is there only with `--metrics`; its gauges of rates are means, so counts are compared instead.",
        "Erasing a slot needs `--slot-save-path`.",
    ),
)
