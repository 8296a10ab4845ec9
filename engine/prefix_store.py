"""Finished prompts in a folder, so that the next process begins where this one ended; MLX, on the decode thread."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import load_prompt_cache, save_prompt_cache

from engine.errors import EngineError
from engine.prefix_cache import PrefixCache

PATTERN = "prefix-*.safetensors"


def save(prefixes: PrefixCache, folder: Path, fingerprint: str, *, most_bytes: int, seconds: float) -> int:
    """Replace what `folder` holds; the newest prompts first, until bytes or time are spent. Returns tokens saved.

    Raises EngineError when the folder cannot be written.
    """
    ends, saved, left = time.monotonic() + seconds, 0, most_bytes
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in folder.glob(PATTERN):
            old.unlink()
        for number, entry in enumerate(prefixes.newest_first()):
            tokens, cache = entry.tokens, entry.cache
            left -= sum(layer.nbytes for layer in cache)
            if left < 0 or time.monotonic() > ends:
                break
            _save_one(folder / f"prefix-{number:06}.safetensors", tokens, cache, fingerprint)
            saved += len(tokens)
    except (OSError, RuntimeError) as error:
        raise EngineError(f"cannot save prompts to {folder}: {error}") from error
    return saved


def load(prefixes: PrefixCache, folder: Path, fingerprint: str) -> int:
    """Take in what `save` left for this very model; returns tokens restored. Files that are no good are passed over."""
    restored = 0
    for file in sorted(folder.glob(PATTERN), reverse=True):  # the newest last, so that it goes last, too
        loaded = _load_one(file, fingerprint)
        if loaded is not None:
            tokens, cache = loaded
            prefixes.keep(tokens, len(tokens), cache)
            restored += len(tokens)
    return restored


def _save_one(file: Path, tokens: tuple[int, ...], cache: list[Any], fingerprint: str) -> None:
    unfinished = file.with_name(f".{file.name}")
    try:
        save_prompt_cache(str(unfinished), cache, {"model": fingerprint, "tokens": json.dumps(tokens)})
        unfinished.chmod(0o600)
        unfinished.rename(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _load_one(file: Path, fingerprint: str) -> tuple[list[int], list[Any]] | None:
    try:
        cache, metadata = load_prompt_cache(str(file), return_metadata=True)  # type: ignore[no-untyped-call]
        if metadata["model"] != fingerprint:
            return None
        tokens = json.loads(metadata["tokens"])
        mx.eval([layer.state for layer in cache])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):  # cut off, or something else altogether
        return None
    is_whole = all(getattr(layer, "offset", len(tokens)) == len(tokens) for layer in cache)
    return (tokens, cache) if is_whole else None
