"""One generation read as text: decoded, cut at stop strings, with a usage that counts what was read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

from engine.detokenize import Detokenizer
from engine.generation import Generation
from engine.openai_wire import Options
from engine.request import Finish, ModelInfo, TokenBatch, Usage
from engine.stops import StopFinder


@dataclass(frozen=True)
class Piece:
    """Some text, which may be empty; the last piece says why it is the last."""

    text: str
    finish: Finish | None = None


class Reading:
    """Turns the batches of one generation into pieces of text. For one reader; `usage` counts what it has read."""

    def __init__(self, generation: Generation, options: Options, info: ModelInfo) -> None:
        self._generation = generation
        decode = partial(info.tokenizer.decode, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        self._detokenizer = Detokenizer(decode, generation.request.prompt[-16:])
        self._stops = StopFinder(options.stops)
        self._tokens = 0

    async def next(self) -> Piece | None:
        """The next piece; None after the last. Raises EngineError where decoding failed or the engine stopped.

        May be cancelled while it waits, and called again, without losing anything.
        """
        batch = await anext(self._generation, None)
        return None if batch is None else self._read(batch)

    def close(self) -> None:
        """Nobody reads on: decoding ends within a step."""
        self._generation.cancel()

    @property
    def usage(self) -> Usage:
        """A step that was under way when the text was cut is not counted."""
        usage = self._generation.usage
        return dataclasses.replace(usage, completion_tokens=min(self._tokens, usage.completion_tokens))

    def _read(self, batch: TokenBatch) -> Piece:
        self._tokens += len(batch.tokens)
        # The token that ended it says so, it is no text.
        tokens = batch.tokens[:-1] if batch.finish == "stop" else batch.tokens
        text = self._stops.feed(self._detokenizer.feed(tokens))
        if batch.finish and not self._stops.is_found:
            text += self._stops.feed(self._detokenizer.flush()) + self._stops.flush()
        if self._stops.is_found:
            self._generation.cancel()
            return Piece(text, "stop")
        return Piece(text, batch.finish)
