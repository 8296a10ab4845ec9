"""Known servers, a file each: what it needs on its command line, and what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from supervisor.presets.dflash_mlx import DFLASH_MLX
from supervisor.presets.freetoken import FREETOKEN
from supervisor.presets.llama_server import LLAMA_SERVER
from supervisor.presets.mlx_lm import MLX_LM
from supervisor.presets.omlx import OMLX
from supervisor.presets.preset import HealthRule, NativeRemedy, Preset, Stats
from supervisor.presets.vllm import VLLM

PRESETS: Final[Mapping[str, Preset]] = {
    preset.name: preset for preset in (OMLX, MLX_LM, DFLASH_MLX, FREETOKEN, LLAMA_SERVER, VLLM)
}

__all__ = ["PRESETS", "HealthRule", "NativeRemedy", "Preset", "Stats"]
