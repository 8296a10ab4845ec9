"""What a worker said of itself when it was new, and what it says now, under like conditions: evidence of a cause."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor.core.words import share

Change = tuple[float, float]
"""A median of the first reports, and one of the last."""

SHOWN_BYTES = 50e6
"""Less would read as none."""


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Of one worker. What it does not tell is None or empty."""

    step_ms: Change | None = None
    """Of a step of decoding, or a cycle of speculation."""
    phases_ms: tuple[tuple[str, Change], ...] = ()
    """What a step is made of, by the server's own names."""
    tokens_per_step: Change | None = None
    acceptance: tuple[Change, ...] = ()
    """Shares of drafted tokens taken, by depth: of the first token drafted, of the second, and so on."""
    decode_tok_s: Change | None = None
    prefill_tok_s: Change | None = None
    memory_bytes: Change | None = None
    cache_bytes: Change | None = None
    """What it keeps of prompts."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Speed, yield and size in words, with numbers; what it does not tell is left out."""
        return tuple(part for part in (self._speed(), self._yield(), self._size()) if part)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same in words, with numbers; none where it tells nothing."""
        return tuple(f"the server says: {part}" for part in self.parts)

    def _speed(self) -> str:
        step = _changed("step", self.step_ms, "ms")
        phases = ", ".join(_changed(name, change, "ms") for name, change in self.phases_ms)
        rates = (_changed("decode", self.decode_tok_s, "tok/s"), _changed("prefill", self.prefill_tok_s, "tok/s"))
        return _listed((f"{step} ({phases})" if step and phases else step or phases, *rates))

    def _yield(self) -> str:
        given = self.tokens_per_step
        tokens = f"{given[0]:.2f} -> {given[1]:.2f} tokens a step" if given else ""
        depths = ", ".join(f"{share(first)} -> {share(last)}" for first, last in self.acceptance)
        return _listed((tokens, f"drafts taken, by depth: {depths}" if depths else ""))

    def _size(self) -> str:
        sizes = (("memory", self.memory_bytes), ("prompt cache", self.cache_bytes))
        shown = ((name, change) for name, change in sizes if change and max(change) >= SHOWN_BYTES)
        return _listed(tuple(f"{name} {first / 1e9:.1f} -> {last / 1e9:.1f} GB" for name, (first, last) in shown))


def _changed(name: str, change: Change | None, unit: str) -> str:
    return "" if change is None else f"{name} {change[0]:.1f} -> {change[1]:.1f} {unit}"


def _listed(parts: tuple[str, ...]) -> str:
    return ", ".join(part for part in parts if part)
