"""Models on this machine: in the Hugging Face cache, and in LM Studio's folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Format = Literal["mlx", "gguf", "safetensors"]

LM_STUDIO_FOLDERS = (".lmstudio/models", ".cache/lm-studio/models")
NO_CHAT_MODEL = ("embed", "rerank", "whisper", "draft", "dflash", "eagle", "mmproj", "-vae", "clip")
"""In the names of what answers no chat by itself."""
ARCHITECTURES = ("ForCausalLM", "ForConditionalGeneration")


@dataclass(frozen=True, slots=True)
class Model:
    """One model that is whole on this disk. ``reference``: what a lane's ``model`` says, a hub id or a path."""

    name: str
    reference: str
    format: Format
    size_bytes: int


def find_models(home: Path, environment: Mapping[str, str]) -> list[Model]:
    """All that are there, largest first; nothing is downloaded, nothing is asked."""
    found = [*_in_hub_cache(hub_cache(home, environment)), *_in_lm_studio(home)]
    by_reference = {model.reference: model for model in found if not _is_no_chat_model(model.name)}
    return sorted(by_reference.values(), key=lambda model: (-model.size_bytes, model.reference))


def hub_cache(home: Path, environment: Mapping[str, str]) -> Path:
    """The folder of the Hugging Face cache, by its own variables."""
    if environment.get("HF_HUB_CACHE"):
        return Path(environment["HF_HUB_CACHE"]).expanduser()
    if environment.get("HF_HOME"):
        return Path(environment["HF_HOME"]).expanduser() / "hub"
    return home / ".cache/huggingface/hub"


def _in_hub_cache(cache: Path) -> Iterator[Model]:
    for folder in _folders(cache):
        kind, _, name = folder.name.partition("--")
        if kind != "models" or "--" not in name:
            continue
        hub_id = name.replace("--", "/", 1)
        for snapshot in _newest_first(folder / "snapshots"):
            model = _model_in(snapshot, hub_id, hub_id)
            if model is not None:
                yield model
                break


def _in_lm_studio(home: Path) -> Iterator[Model]:
    for root in LM_STUDIO_FOLDERS:
        for publisher in _folders(home / root):
            for folder in _folders(publisher):
                model = _model_in(folder, f"{publisher.name}/{folder.name}", str(folder))
                if model is not None:
                    yield model


def _model_in(folder: Path, name: str, reference: str) -> Model | None:
    """The model whose files lie in ``folder``; None if it is not whole, or no model that generates text."""
    ggufs = sorted((file for file in _files(folder, ".gguf") if "mmproj" not in file.name), key=_size, reverse=True)
    if ggufs:
        # Parts of one model are named -00001-of-00003; llama-server wants the first.
        first = min((file for file in ggufs if "-of-" in file.name), default=ggufs[0], key=lambda file: file.name)
        return Model(name, str(first), "gguf", sum(map(_size, ggufs)) if "-of-" in first.name else _size(first))
    config, weights = _json(folder / "config.json"), _files(folder, ".safetensors")
    architectures = [str(name) for name in config.get("architectures") or ()]
    if not weights or not any(name.endswith(ARCHITECTURES) for name in architectures):
        return None
    is_mlx = "quantization" in config or name.startswith("mlx-community/")
    return Model(name, reference, "mlx" if is_mlx else "safetensors", sum(map(_size, weights)))


def _is_no_chat_model(name: str) -> bool:
    return any(part in name.lower() for part in NO_CHAT_MODEL)


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return []


def _newest_first(folder: Path) -> list[Path]:
    return sorted(_folders(folder), key=lambda entry: entry.stat().st_mtime, reverse=True)


def _files(folder: Path, suffix: str) -> list[Path]:
    """Whole files: a link into the cache that leads nowhere is a download that did not end."""
    try:
        return [entry for entry in folder.iterdir() if entry.suffix == suffix and entry.is_file()]
    except OSError:
        return []


def _size(file: Path) -> int:
    return file.stat().st_size


def _json(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
