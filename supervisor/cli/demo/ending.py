"""What the demo showed, in the end: the record, the texts, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from supervisor.cli.demo.reader import Answer
from supervisor.cli.render.layout import hang, painted
from supervisor.cli.render.recycles import story
from supervisor.cli.terminal import out, say, width
from supervisor.core.words import length, plural, rate, share

ENOUGH = 0.9
"""A new worker is as fast as the first one from this ratio on."""


@dataclass(frozen=True)
class Outcome:
    """All that happened. ``before``: the uninterrupted answers; ``during``: those streamed from the slow-down on."""

    record: Mapping[str, Any]
    before: Sequence[Answer]
    during: Sequence[Answer]
    finished: Answer | None
    """Under way as the drain began: the old worker's last."""
    crossing: Answer | None
    """Held from the old worker to the new one."""

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
    say("", _head("The record, as `freshlane log` shows it"))
    say(*story(outcome.record, width(), out()))
    for answer, how in (
        (outcome.finished, "The answer under way as the drain began: the old worker finished it"),
        (outcome.crossing, "The answer held through the downtime: the new worker gave it"),
    ):
        if answer is not None:
            say("", _head(how))
            say(*hang(Text(f"“{' '.join(answer.text.split())}”"), width(), out()))
            _say_sha256(answer, outcome.reference(answer))
    say("", _head("What it means"))
    for line in _meaning(outcome):
        say(*hang(Text(line), width(), out(), rest=2))


def _say_sha256(answer: Answer, reference: Answer) -> None:
    is_equal = answer.sha256 == reference.sha256
    verdict = painted("equal", "good") if is_equal else painted("not equal", "bad")
    for name, each in (("uninterrupted", reference), ("now", answer)):
        short = painted(f"  sha256 {name:<13} {each.sha256[:48]}…", "quiet")
        say(short if each is reference else short.append("  ").append_text(verdict))


def _meaning(outcome: Outcome) -> list[str]:
    record, during = outcome.record, outcome.during
    before, after = record.get("before") or {}, record.get("after") or {}
    equal = sum(each.is_whole for each in during) - len(outcome.different)
    longest_s = max(each.waited_s for each in during)
    return [
        f"The worker had become slow: {rate(before.get('decode_tok_s'))} tok/s, {share(before.get('ratio'))} of a "
        f"fresh one's. A new one does {rate(after.get('decode_tok_s'))} tok/s, {share(_ratio(record))}.",
        f"For {length(record.get('downtime_s'))} no worker served. The client saw a wait of {length(longest_s)} at "
        "most, and no error.",
        f"{equal} of {plural(len(during), 'answer')} streamed since the slow-down have the same sha256 as when nothing "
        "interrupted them.",
    ]


def _ratio(record: Mapping[str, Any]) -> float | None:
    ratio = (record.get("after") or {}).get("ratio")
    return None if ratio is None else float(ratio)


def _head(text: str) -> Text:
    return Text(text, style="name")
