"""One generation read as text: decoded, cut at stop strings, with a usage that counts what was read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

from engine.detokenize import CONTEXT_TOKENS, Detokenizer
from engine.generation import Generation
from engine.openai_answers import Reason
from engine.openai_wire import ChatCall, CompletionCall
from engine.reasoning import ReasoningFinder, is_reasoning
from engine.request import ModelInfo, TokenBatch, TokenScore, Usage
from engine.stops import StopFinder
from engine.tool_calls import ToolCall, ToolCallFinder


@dataclass(frozen=True)
class Piece:
    """Some text, which may be empty, and whole tool calls; the last piece says why it is the last.

    `scores` are those of the tokens read, which may be part of text that comes later, or is cut off.
    """

    text: str
    finish: Reason | None = None
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    scores: tuple[TokenScore, ...] = ()

    def plus(self, later: Piece) -> Piece:
        """This and what came after it, as one."""
        return Piece(
            self.text + later.text,
            later.finish,
            self.calls + later.calls,
            self.reasoning + later.reasoning,
            self.scores + later.scores,
        )


class Reading:
    """Turns the batches of one generation into pieces of text. For one reader; `usage` counts what it has read."""

    def __init__(self, generation: Generation, call: ChatCall | CompletionCall, info: ModelInfo) -> None:
        self._generation = generation
        self._finder = _tool_call_finder(call, info)
        self._reasoning = _reasoning_finder(call, generation.request.prompt, info)
        has_markers = self._finder is not None or self._reasoning is not None
        # The markers of tool calls and of reasoning are special tokens in some vocabularies.
        decode = partial(info.tokenizer.decode, skip_special_tokens=not has_markers, clean_up_tokenization_spaces=False)
        self._detokenizer = Detokenizer(decode, generation.request.prompt[-CONTEXT_TOKENS:])
        self._stops = StopFinder(call.options.stops)
        self._tokens = 0
        self._has_called = False

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
        thought, text, calls = self._part(self._detokenizer.feed(tokens), is_last=False)
        if batch.finish and not self._stops.is_found:
            last_thought, more, last_calls = self._part(self._detokenizer.flush(), is_last=True)
            thought, text, calls = thought + last_thought, text + more + self._stops.flush(), calls + last_calls
        finish: Reason | None = batch.finish
        if self._stops.is_found:
            self._generation.cancel()
            finish = "stop"
        elif finish == "stop" and self._has_called:
            finish = "tool_calls"
        return Piece(text, finish, calls, thought, batch.scores[: len(tokens)])

    def _part(self, text: str, *, is_last: bool) -> tuple[str, str, tuple[ToolCall, ...]]:
        """The reasoning in `text`, what may be shown of the rest, and what it calls."""
        thought, calls = "", list[ToolCall]()
        if self._reasoning is not None:
            thought, text = self._reasoning.feed(text)
            if is_last:
                last, more = self._reasoning.flush()
                thought, text = thought + last, text + more
        if self._finder is not None:
            text, calls = self._finder.feed(text)
            if is_last:
                more, last_calls = self._finder.flush()
                text, calls = text + more, calls + last_calls
            self._has_called |= bool(calls)
        return thought, self._stops.feed(text), tuple(calls)


def _reasoning_finder(
    call: ChatCall | CompletionCall, prompt: tuple[int, ...], info: ModelInfo
) -> ReasoningFinder | None:
    tokenizer = info.tokenizer
    if not isinstance(call, ChatCall) or not tokenizer.has_thinking:
        return None
    is_inside = is_reasoning(tokenizer, prompt)
    return ReasoningFinder(tokenizer.think_start, tokenizer.think_end, is_inside=is_inside)


def _tool_call_finder(call: ChatCall | CompletionCall, info: ModelInfo) -> ToolCallFinder | None:
    tokenizer = info.tokenizer
    if not isinstance(call, ChatCall) or not call.tools or not tokenizer.has_tool_calling:
        return None
    parse = partial(tokenizer.tool_parser, tools=call.tools)
    return ToolCallFinder(tokenizer.tool_call_start, tokenizer.tool_call_end or "", parse)
