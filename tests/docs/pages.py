"""The pages that people read, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", REPOSITORY / "bench" / "README.md"]
PAGES += sorted((REPOSITORY / "docs").glob("*.md"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of this language."""
    return [text for kind, text in FENCE.findall(page.read_text()) if kind == language]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page.read_text())


def code(page: Path) -> Iterator[str]:
    """What is written as code: inline, or a line of a shell block without its comment."""
    yield from INLINE.findall(prose(page))
    for block in blocks(page, "sh"):
        yield from (line.split("  #")[0].strip() for line in block.splitlines())


def links(page: Path) -> list[str]:
    return LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The headings, as GitHub makes anchors of them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
