"""The fake model: its tokens follow from the prompt alone, so that a client knows the whole answer beforehand."""

from __future__ import annotations

import hashlib

ORDINARY = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which
one you were all her she there would their we him been has when who will no more if out so said what up its about
river stone light paper window garden winter summer morning evening letter bridge candle forest harbour island
"""
HOSTILE = ("café", "naïve", "Zürich", "東京", "мир", "🙂", '"quoted"', "back\\slash", "new\nline", "{brace}", "data:")
VOCABULARY = (*ORDINARY.split(), *HOSTILE)
CHARACTERS_PER_TOKEN = 4


def tokens(prompt: str, start: int, count: int) -> list[str]:
    """`count` tokens of the answer to `prompt`, from token `start`; each ends in a space."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    return [_token(seed, position) for position in range(start, start + count)]


def _token(seed: int, position: int) -> str:
    mixed = ((seed ^ position) * 0x9E3779B97F4A7C15 + position * 0xC2B2AE3D27D4EB4F) & 0xFFFFFFFFFFFFFFFF
    return VOCABULARY[(mixed >> 33) % len(VOCABULARY)] + " "


def count_tokens(text: str) -> int:
    """Tokens of a prompt: one for every four characters begun."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
