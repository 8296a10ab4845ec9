"""Drafters guess the next tokens of a sequence; the model verifies them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from engine.taps import Taps


@dataclass(frozen=True)
class Draft:
    """Guessed tokens, in order. Acceptance is learned per `kind`: a drafter names its degrees of confidence by it."""

    tokens: tuple[int, ...] = ()
    kind: str = ""


class Drafter(Protocol):
    """Follows one sequence at a time and guesses how it goes on."""

    @property
    def method(self) -> str:
        """The name that /stats shows."""

    def begin(self, tokens: list[int]) -> None:
        """Follow a new sequence, which starts with `tokens`."""

    def extend(self, tokens: list[int]) -> None:
        """The sequence went on with `tokens`."""

    def propose(self, limit: int) -> Draft:
        """Guess at most `limit` tokens after those known; an empty draft where there is nothing to go by."""


class DraftMemory(Protocol):
    """What a drafter has computed of a text, kept with the text's KV cache."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""

    def cut(self, length: int) -> None:
        """Forget what is not of the first `length` tokens."""

    def copied(self, length: int) -> DraftMemory:
        """The same of the first `length` tokens, on its own."""


class PaidDrafter(Drafter, Protocol):
    """A drafter whose guesses cost time on the device: it is asked only when they are expected to pay."""

    @property
    def longest(self) -> int:
        """The most tokens it guesses at once."""

    def recall(self, memory: DraftMemory | None) -> None:
        """Of the sequence that is about to be fed this is known; it is the one that `begin` is told of next."""

    def memory(self, length: int) -> DraftMemory | None:
        """Hand over what is known of the sequence's first `length` tokens."""

    @property
    def taps(self) -> Taps | None:
        """The target's hidden states that it reads, which each sequence has to keep; None for none."""


class NoDrafter:
    """Guesses nothing: every step is a plain one."""

    method = "off"

    def begin(self, tokens: list[int]) -> None:
        pass

    def extend(self, tokens: list[int]) -> None:
        pass

    def propose(self, limit: int) -> Draft:  # noqa: ARG002  the protocol's signature
        return Draft()
