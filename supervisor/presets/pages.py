"""What docs/presets.md says of each preset, made from the presets themselves."""

from __future__ import annotations

from collections.abc import Iterator

from supervisor.presets import PRESETS
from supervisor.presets.preset import Preset


def preset_table() -> str:
    """One line a server: where it usually is, how it is stopped, and what is known of it from where."""
    rows = [
        f"| [`{preset.name}`](#{preset.name}) | {preset.usual_port} | {_signal(preset)} | {preset.tested} |"
        for preset in PRESETS.values()
    ]
    head = ["| preset | usual port | stop signal | known from |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def preset_sections() -> str:
    """One section a server."""
    return "\n\n".join("\n".join(_section(preset)) for preset in PRESETS.values())


def _section(preset: Preset) -> Iterator[str]:
    yield f"### {preset.name}\n"
    yield f"{preset.title}. Known from: {preset.tested}.\n"
    yield from (f"- {name}: {said}" for name, said in _facts(preset) if said)
    yield "\nMind:\n"
    yield from (f"- {trap}" for trap in preset.traps)


def _facts(preset: Preset) -> Iterator[tuple[str, str]]:
    env = " ".join(f"{name}={value}" for name, value in preset.fills.get("env", {}).items())
    yield "Command", f"`{' '.join(preset.fills['command'])}`"
    yield "Environment", f"`{env}`" if env else ""
    yield "Further ports", ", ".join(f"its own + {distance}" for distance in preset.extra_ports)
    yield "Ready", _readiness(preset)
    yield "Never to be ready again", ", ".join(f"a `status` of `{word}`" for word in sorted(preset.health.dead))
    yield "Model name that it is sent", _name(preset)
    yield "Thinking off", preset.thinking_off
    yield "Thinking comes as", f"`{preset.reasoning_field}`"
    yield "Stop", _signal(preset)
    yield "Replaced", "in place" if preset.fills.get("replace") == "in_place" else "with overlap where two fit"
    yield "Watched files", ", ".join(f"`{path}`" for path in preset.fills.get("watch_files", ()))
    yield "Says of itself", _readers(preset)
    yield "Mild remedies", ", ".join(f"`{name}` by `{how.path}`" for name, how in preset.remedies.items())


def _signal(preset: Preset) -> str:
    return f"SIG{preset.fills.get('stop_signal', 'TERM')}"


def _readiness(preset: Preset) -> str:
    words = ", ".join(f"`{word}`" for word in sorted(preset.health.ready))
    health = f"a health of 200 with a `status` of {words}" if words else "a health of 200"
    return f"{health}, and a first token{' (which loads the model)' if preset.is_lazy else ''}"


def _name(preset: Preset) -> str:
    if "served_model" in preset.fills:
        return f"`{preset.fills['served_model']}`"
    return "the lane's name, or `served_model`" if "{model}" in preset.fills["command"] else "`served_model`"


def _readers(preset: Preset) -> str:
    told = [f"`{preset.stats.path}`"] if preset.stats else []
    return ", ".join([*(["its log"] if preset.log else []), *told])
