"""The models of freshlane's own engine: on this disk, or still to be downloaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from supervisor.cli.doctor.finding import Finding, doubtful, good
from supervisor.cli.finding.models import hub_cache
from supervisor.settings import LaneSettings, Settings

BUILT_IN = frozenset({"smollm2-135m"})


def models(settings: Settings, home: Path, environment: Mapping[str, str]) -> Iterator[Finding]:
    """For each lane that loads a model by hub id: whether its first start has to wait for a download."""
    cache = hub_cache(home, environment)
    for lane in settings.lanes.values():
        model = lane.model
        if (
            model is None
            or lane.is_attached
            or model in BUILT_IN
            or "/" not in model
            or model.startswith(("/", "~", "."))
        ):
            continue
        yield _in_cache(lane, model, cache)


def _in_cache(lane: LaneSettings, model: str, cache: Path) -> Finding:
    snapshots = cache / f"models--{model.replace('/', '--')}" / "snapshots"
    weights = [file for suffix in ("safetensors", "gguf") for file in snapshots.glob(f"*/*.{suffix}") if file.is_file()]
    if weights:
        return good(f"lane {lane.name}", f"{model} is in the cache")
    remedy = f"`hf download {model}` beforehand, or give the lane a longer start_timeout for the first start"
    return doubtful(f"lane {lane.name}", f"{model} is not in {cache}; the first start downloads it", remedy)
