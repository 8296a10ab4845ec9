"""Lines of aligned columns that fit the terminal: on a narrow one the least important columns are left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.text import Text

GAP = 2
UNIT_GAP = re.compile(r"(?<=\d) (?=[a-zA-Z%])")
"""Between a number and what it counts no line ends."""
GLUE = "\ue000"


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


def hang(text: Text, width: int | None, console: Console, *, first: int = 0, rest: int = 0) -> list[Text]:
    """``text`` in lines within ``width`` cells, behind ``first`` blanks and then ``rest``; None: one line."""
    if width is None:
        return [Text(" " * first).append_text(text)]
    glued = text.copy()
    glued.plain = UNIT_GAP.sub(GLUE, text.plain)
    lines = [line for line in glued.wrap(console, max(20, width - max(first, rest))) if line.plain]
    for line in lines:
        line.rstrip()
        line.plain = line.plain.replace(GLUE, " ")
    return [Text(" " * (rest if at else first)).append_text(line) for at, line in enumerate(lines)]


def cut(lines: Sequence[Text], most: int | None) -> list[Text]:
    """The first ``most`` lines (None: all), the last of them with an ellipsis if that is not all."""
    if most is None or len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], lines[most - 1].copy().append(" …")] if most else []


def labelled(label: Text, text: Text, width: int | None, console: Console, *, indent: int) -> list[Text]:
    """``text`` behind ``indent`` blanks, the label in place of the first ones; a longer label has a line to itself."""
    lines = hang(text, width, console, first=indent, rest=indent)
    if label.cell_len + GAP > indent:
        return [label, *lines]
    first, *others = lines
    return [label.append(" " * (indent - label.cell_len)).append_text(first[indent:]), *others]


def painted(text: str, style: str) -> Text:
    """``text`` in a style that ends with it, whatever is appended."""
    return Text().append(text, style)


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
