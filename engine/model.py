"""Find a model, load it whole, and make it fit the device: MLX, on the decode thread."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
from huggingface_hub import snapshot_download
from mlx.nn.layers.base import Module
from mlx.utils import tree_flatten
from mlx_lm.tokenizer_utils import load as load_tokenizer
from mlx_lm.utils import DEFAULT_ALLOW_PATTERNS, dequantize_model, load_model

from engine import smollm2
from engine.errors import ModelError
from engine.request import ModelInfo
from engine.wheel import sha256_of

HUB_ANSWER_S = 10.0
DEFAULT_CONTEXT = 4096
"""For a model whose config does not say."""
LoadProgress = Callable[[str, float], None]


@dataclass(frozen=True)
class LoadedModel:
    """A model in memory, evaluated, on this thread's stream."""

    model: Module
    info: ModelInfo
    weight_bytes: int


def load(name: str, tell: LoadProgress, max_context: int | None = None) -> LoadedModel:
    """Load the built-in model, a folder, or a model of the Hugging Face hub.

    Raises ModelError that says what is missing or broken. On a CPU the weights become float32: MLX has no fast 16-bit
    or quantized matrix product there.
    """
    folder = _find(name, tell)
    tell("checking the weights", 0.7)
    for file in sorted(folder.glob("model*.safetensors")):
        _check_whole(file)
    _check_manifest(folder)
    tell("loading the weights", 0.8)
    try:
        model, config = load_model(folder)
        tokenizer = load_tokenizer(folder, eos_token_ids=config.get("eos_token_id"))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"cannot load the model in {folder}: {error}") from error
    if mx.default_device() == mx.cpu:
        model = dequantize_model(model)
        model.set_dtype(mx.float32)
    mx.eval(model.parameters())
    model.eval()
    weight_bytes = sum(weight.nbytes for weight in dict(tree_flatten(model.parameters())).values())
    wire(weight_bytes)
    tell("ready", 1.0)
    text = config.get("text_config", config)
    longest = int(text.get("max_position_embeddings") or DEFAULT_CONTEXT)
    info = ModelInfo(
        id=name,
        tokenizer=tokenizer,
        vocab_size=int(text["vocab_size"]),
        context_length=min(longest, max_context or longest),
        eos_ids=frozenset(tokenizer.eos_token_ids),
    )
    return LoadedModel(model, info, weight_bytes)


def _find(name: str, tell: LoadProgress) -> Path:
    if name == smollm2.NAME:
        return smollm2.smollm2_folder(tell)
    folder = Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ModelError(f"{folder} holds no config.json; --model wants a model folder in Hugging Face's layout")
        return folder
    if name.count("/") != 1 or name.startswith((".", "~")):
        raise ModelError(f"no model {name!r}: neither a folder, nor a hub id (owner/name), nor {smollm2.NAME}")
    return _find_on_hub(name, tell)


def _find_on_hub(name: str, tell: LoadProgress) -> Path:
    try:
        return Path(snapshot_download(name, allow_patterns=DEFAULT_ALLOW_PATTERNS, local_files_only=True))
    except (OSError, ValueError):  # not here yet, or not whole
        tell(f"fetching {name} from the Hugging Face hub", 0.0)
    try:
        return Path(snapshot_download(name, allow_patterns=DEFAULT_ALLOW_PATTERNS, etag_timeout=HUB_ANSWER_S))
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"cannot fetch {name} from the Hugging Face hub: {reason}. Check the name and the network, or give a folder"
        ) from error


def _check_whole(file: Path) -> None:
    """Fail now, not inside someone's request, for a safetensors file shorter than its own header says."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        start = opened.read(8)
        header_size = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if header_size >= size:
            raise ModelError(f"{file} is not a whole safetensors file ({size} bytes); fetch it again")
        header: dict[str, Any] = json.loads(opened.read(header_size))
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    expected = 8 + header_size + max(ends, default=0)
    if size < expected:
        raise ModelError(f"{file} is cut off: {size} of {expected} bytes; fetch it again")


def _check_manifest(folder: Path) -> None:
    """What the engine has built itself carries a checksum (0.3 s for 540 MB)."""
    manifest = folder / smollm2.MANIFEST
    if not manifest.is_file():
        return
    expected = json.loads(manifest.read_text())["model.safetensors"]
    if sha256_of(folder / "model.safetensors") != expected:
        raise ModelError(f"{folder / 'model.safetensors'} is damaged; remove {folder}, it will be made again")


def wire(weight_bytes: int) -> None:
    """On Metal, keep the weights and no more from being paged out: wiring the maximum has panicked machines."""
    if mx.metal.is_available():
        mx.set_wired_limit(min(weight_bytes, int(mx.device_info()["max_recommended_working_set_size"])))
