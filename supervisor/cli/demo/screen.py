"""What a person sees of the demo: a line for each thing that happens, and under them what is so just now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from supervisor.cli.render.layout import hang, painted
from supervisor.cli.terminal import out, say, width

REDRAWS_PER_S = 8
PHASE_WIDTH = 9
TEXT_AT = 21
"""Cells before the text of a line."""

Now = Callable[[int], list[Text]]
"""What is so just now, in lines of at most so many cells."""


class Screen:
    """The story so far goes to stdout line by line; a terminal shows the present under it."""

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def elapsed_s(self) -> float:
        """Since the demo began."""
        return asyncio.get_running_loop().time() - self._began

    def tell(self, phase: str, text: str, style: str = "") -> None:
        """Something happened."""
        head = painted(f"{self.elapsed_s():6.1f} s  ", "quiet").append(
            f"{phase:<{PHASE_WIDTH}}  ", style=style or "busy"
        )
        first, *rest = hang(Text(text), width(), out(), first=TEXT_AT, rest=TEXT_AT)
        say(head.append_text(first[TEXT_AT:]), *rest)

    @contextmanager
    def live(self, now: Now) -> Iterator[None]:
        """Within the block a terminal shows ``now`` under the story; anything else gets the story alone."""
        if not out().is_interactive or out().is_dumb_terminal:
            yield
            return
        with Live(_Now(now), console=out(), refresh_per_second=REDRAWS_PER_S, transient=True):
            yield


class _Now:
    def __init__(self, now: Now) -> None:
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * options.max_width, style="quiet")
        for line in self._now(options.max_width):
            line.truncate(options.max_width, overflow="ellipsis")
            yield line


def labelled(label: str, content: Text | str) -> Text:
    """A line of the present."""
    text = painted(f" {label:<7} ", "quiet")
    return text.append_text(content) if isinstance(content, Text) else text.append(content)
