"""How lines are laid out on a narrow terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from supervisor.cli.render.layout import hang, labelled

NARROW = 30


def lines(*texts: Text) -> list[str]:
    return [text.plain for text in texts]


def test_a_text_behind_a_label_is_wrapped_at_the_full_width() -> None:
    shown = labelled(Text("fresh"), Text("27.3 tok/s after 256 tokens, from 5 spawns"), NARROW, Console(), indent=8)
    assert lines(*shown) == ["fresh   27.3 tok/s after", "        256 tokens, from", "        5 spawns"]


def test_a_label_that_is_too_long_has_a_line_to_itself() -> None:
    assert lines(*labelled(Text("qwen3-coder"), Text("not known yet"), NARROW, Console(), indent=8)) == [
        "qwen3-coder",
        "        not known yet",
    ]


def test_no_line_ends_between_a_number_and_what_it_counts() -> None:
    assert lines(*hang(Text("since Monday: 3 recycles, 0 failed"), 32, Console())) == [
        "since Monday: 3 recycles,",
        "0 failed",
    ]
