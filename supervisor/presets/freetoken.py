"""FreeToken."""

from __future__ import annotations

from typing import Final

from supervisor.presets.preset import HERE, NAMED, HealthRule, NativeRemedy, Preset, Stats
from supervisor.readings.freetoken import FreetokenLog, freetoken_stats

FREETOKEN: Final = Preset(
    name="freetoken",
    title="FreeToken",
    tested="read in its repository (0ab982f) and wheel 0.2.1; its log by lines of a public report; not run",
    fills={
        "command": ["ft", "serve", "--model", "{model}", *HERE, *NAMED, "--enable-cache-report"],
        # It fills its device's memory, so a second one does not fit beside it.
        "replace": "in_place",
    },
    usual_port=1919,
    health=HealthRule(ready=frozenset({"ok"}), dead=frozenset({"error"})),
    extra_ports=(1,),
    log=FreetokenLog,
    stats=Stats("/v1/stats", freetoken_stats),
    remedies={"clear_cache": NativeRemedy("/v1/cache/rebuild", {"mode": "if_idle"})},
    thinking_off='`chat_template_kwargs: {"enable_thinking": false}` or `reasoning_effort: "none"`, a request',
    traps=(
        "It also takes the port above its own.",
        'It answers its health with 200 while it still loads; the body says `"loading"`.',
        "The first decode line behind a prefill or a pause counts the pause too, and is not believed.",
        "Its own supervisor (`ft daemon`) would fight this one: start it with `ft serve` only.",
        "Without `--enable-cache-report` it does not say what of a prompt its cache knew.",
    ),
)
