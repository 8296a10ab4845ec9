"""The screen of ``freshlane top``: what is known now, drawn to the terminal's size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from supervisor.cli.render.lanes_table import lanes_table
from supervisor.cli.render.layout import painted
from supervisor.cli.render.recycles import story
from supervisor.cli.words import sparkline
from supervisor.core.words import plural

HISTORY_S = 24 * 3600.0
SPARKS = 20
TITLE_LINES = 2
STORIES_HEAD = ("", "NEWEST RECYCLES")


class TopScreen:
    """Change its attributes; rich draws it anew."""

    MOST_STORIES: ClassVar[int] = 3

    def __init__(self, url: str) -> None:
        self.url = url
        self.lanes: Sequence[Mapping[str, Any]] = ()
        self.samples: Sequence[Mapping[str, Any]] = ()
        self.recycles: Sequence[Mapping[str, Any]] = ()
        self.trouble = ""

    @staticmethod
    def since() -> float:
        """Unix time from which on samples are shown."""
        return datetime.now(UTC).timestamp() - HISTORY_S

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        lines = [self._title(width), Text(), *self._lanes(width, height - TITLE_LINES, console)]
        lines += self._stories(width, height - len(lines), console)
        for line in lines:
            line.truncate(width, overflow="ellipsis")
            yield line

    def _lanes(self, width: int, height: int, console: Console) -> list[Text]:
        """All lanes, with as much of their reasons as there is room for; where there is none, as many as fit."""
        courses = trends(self.samples, self.lanes)
        lines: list[Text] = []
        for most_lines in (None, 2, 1, 0):
            lines = lanes_table(self.lanes, width, console, courses, most_lines=most_lines)
            if len(lines) <= height:
                return lines
        shown = max(1, height - 1)
        more = Text(f"{len(lines) - shown} more: `freshlane status`, or a higher window", style="quiet")
        return [*lines[:shown], more]

    def _stories(self, width: int, height: int, console: Console) -> list[Text]:
        """The newest recycles that fit as a whole, the newest last."""
        lines: list[Text] = []
        for record in sorted(self.recycles, key=lambda record: str(record.get("time", "")), reverse=True):
            told = story(record, width, console)
            if len(told) + len(lines) + len(STORIES_HEAD) > height:
                break
            lines = [*told, *lines]
        return [*(Text(line, style="head") for line in STORIES_HEAD), *lines] if lines else []

    def _title(self, width: int) -> Text:
        title = painted("freshlane ", "name").append(f"{self.url}  {plural(len(self.lanes), 'lane')}", style="quiet")
        right = (
            Text(self.trouble, style="bad")
            if self.trouble
            else Text(f"{datetime.now().astimezone():%H:%M:%S}", style="quiet")
        )
        return title.append(" " * max(2, width - title.cell_len - right.cell_len)).append_text(right)


def trends(samples: Sequence[Mapping[str, Any]], lanes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each lane the course of its decode rate, as bars up to the fresh rate or the fastest run."""
    rates: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in sorted(samples, key=lambda sample: float(sample.get("wall") or 0.0)):
        is_clean = not (sample.get("void") or sample.get("is_warmup"))
        if sample.get("decode_tok_s") and is_clean and not sample.get("model"):
            size = int(sample.get("prompt_tokens") or 0)
            rates[str(sample.get("lane"))][size].append(float(sample["decode_tok_s"]))
    fresh = {str(lane.get("name")): (lane.get("baseline") or {}).get("decode_tok_s") for lane in lanes}
    return {lane: sparkline(by_size[min(by_size)], SPARKS, fresh.get(lane)) for lane, by_size in rates.items()}
