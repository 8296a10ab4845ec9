"""The fake prefix cache: which beginnings of prompts have been seen, in blocks of 64 tokens."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.fake_worker.words import CHARACTERS_PER_TOKEN

BLOCK_TOKENS = 64
FILE = "fake-prefix.json"


class PrefixCache:
    def __init__(self, room: int) -> None:
        self._room = room
        self._blocks: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def reuse(self, prompt: str) -> int:
        """How many tokens of the prompt's beginning were seen before; now all of it is."""
        width, reused, chain, unbroken = BLOCK_TOKENS * CHARACTERS_PER_TOKEN, 0, hashlib.sha256(), True
        for start in range(0, len(prompt) - width + 1, width):
            chain.update(prompt[start : start + width].encode())
            key = chain.hexdigest()[:24]
            unbroken = unbroken and key in self._blocks
            reused += BLOCK_TOKENS * unbroken
            self._blocks[key] = None
        while len(self._blocks) > self._room:
            self._blocks.pop(next(iter(self._blocks)))
        return reused

    def drop(self) -> None:
        self._blocks.clear()

    def save(self, folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(list(self._blocks)))
        return {"saved_tokens": len(self._blocks) * BLOCK_TOKENS, "folder": str(folder)}

    def load(self, folder: Path) -> dict[str, Any]:
        """Nothing saved there counts as nothing restored."""
        try:
            blocks = json.loads((folder / FILE).read_text())
        except OSError:
            blocks = []
        self._blocks.update(dict.fromkeys(blocks))
        return {"restored_tokens": len(blocks) * BLOCK_TOKENS, "folder": str(folder)}
