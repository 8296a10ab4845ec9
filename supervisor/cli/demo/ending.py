"""What the demo showed, in the end: the record, the texts, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from supervisor.cli.demo.reader import Answer
from supervisor.cli.render.layout import hang
from supervisor.cli.render.recycles import story
from supervisor.cli.terminal import out, say, width
from supervisor.cli.words import length, plural, rate, share

ENOUGH = 0.9
"""A new worker is as fast as the first one from this ratio on."""


@dataclass(frozen=True)
class Outcome:
    """All that happened. ``before``: the uninterrupted answers; ``during``: those streamed from the slow-down on."""

    record: Mapping[str, Any]
    before: Sequence[Answer]
    during: Sequence[Answer]
    crossing: Answer
    """The one that was held from the old worker to the new one."""

    def reference(self, answer: Answer) -> Answer:
        """The uninterrupted answer to the same question."""
        return next(other for other in self.before if other.question == answer.question)

    @property
    def failed(self) -> list[Answer]:
        """Answers that did not come whole."""
        return [answer for answer in self.during if not answer.is_whole]

    @property
    def different(self) -> list[Answer]:
        """Whole answers whose text is not that of the uninterrupted one."""
        return [each for each in self.during if each.is_whole and each.sha256 != self.reference(each).sha256]

    def trouble(self) -> str:
        """What did not go as it should; empty if all did."""
        record = self.record
        if self.failed:
            return f"{plural(len(self.failed), 'answer')} did not come whole: {self.failed[0].error}"
        if self.different:
            return f"{plural(len(self.different), 'answer')} had another text than the uninterrupted one"
        if record.get("outcome") != "cured":
            return (
                f"the recycle ended as {record.get('outcome')}: the new worker does {share(_ratio(record))} of the "
                "first one's rate\nis this machine busy with something else? Try again when it is quiet"
            )
        return ""


def tell_ending(outcome: Outcome) -> None:
    """Print it all."""
    say("", _head("The record (freshlane log)"))
    say(*story(outcome.record, width(), out()))
    say("", _head("The text that was streamed through the recycle"))
    say(f"“{' '.join(outcome.crossing.text.split())}”")
    say(f"uninterrupted {outcome.reference(outcome.crossing).sha256}")
    say(f"  through it  {outcome.crossing.sha256}")
    say("", _head("What it means"))
    for line in _meaning(outcome):
        say(*hang(Text(f"  {line}"), width(), out(), rest=2))


def _meaning(outcome: Outcome) -> list[str]:
    record = outcome.record
    before, after = record.get("before") or {}, record.get("after") or {}
    equal = sum(each.is_whole for each in outcome.during) - len(outcome.different)
    return [
        f"The worker had become slow ({rate(before.get('decode_tok_s'))} tok/s, {share(before.get('ratio'))} of "
        f"fresh); a new one is at {rate(after.get('decode_tok_s'))} tok/s, {share(_ratio(record))}.",
        f"No worker served for {length(record.get('downtime_s'))}. The client noticed a wait of "
        f"{length(outcome.crossing.waited_s)} before one answer, and no error.",
        f"{equal} of {plural(len(outcome.during), 'answer')} since the slow-down have the sha256 of the uninterrupted text.",
    ]


def _ratio(record: Mapping[str, Any]) -> float | None:
    ratio = (record.get("after") or {}).get("ratio")
    return None if ratio is None else float(ratio)


def _head(text: str) -> Text:
    return Text(text, style="name")
