"""Lines of aligned columns that fit the terminal: on a narrow one the least important columns are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.text import Text

GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``worth``: those of the least worth go first when the terminal is narrow."""

    title: str
    worth: int
    align: Literal["left", "right"] = "left"


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int | None) -> list[Text]:
    """A title line, and a line for each row. ``width`` in cells; None: whatever it takes."""
    widths = [
        max(len(column.title), *(row[index].cell_len for row in rows)) if rows else len(column.title)
        for index, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    while width is not None and len(shown) > 1 and sum(widths[i] + GAP for i in shown) - GAP > width:
        shown.remove(min(shown, key=lambda i: columns[i].worth))
    titles = [Text(column.title, style="head") for column in columns]
    return [_line(row, columns, widths, shown) for row in (titles, *rows)]


def hang(text: Text, indent: int, width: int | None, console: Console) -> list[Text]:
    """``text`` in lines of at most ``width`` cells, each behind ``indent`` blanks."""
    lines = [text] if width is None else text.wrap(console, max(20, width - indent))
    return [Text(" " * indent).append_text(line) for line in lines]


def _line(row: Sequence[Text], columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int]) -> Text:
    line = Text()
    for i in shown:
        padding = " " * (widths[i] - row[i].cell_len)
        if columns[i].align == "right":
            line.append(padding)
        line.append_text(row[i])
        if columns[i].align == "left":
            line.append(padding)
        line.append(" " * GAP)
    line.rstrip()
    return line
