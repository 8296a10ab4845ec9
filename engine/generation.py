"""One request's tokens on their way from the decode thread to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from engine.errors import EngineError
from engine.request import GenerationRequest, TokenBatch, Usage


class Generation:
    """An async iterator of TokenBatch, for one reader on the event loop.

    It ends after the batch that has a `finish`, or after `cancel`; it raises EngineError where decoding failed or the
    engine stopped. `usage` may be read at any time and is final once the iterator has ended.
    """

    def __init__(self, request: GenerationRequest, loop: asyncio.AbstractEventLoop) -> None:
        self.request = request
        self.usage = Usage(prompt_tokens=len(request.prompt))
        self.is_cancelled = False
        self._loop = loop
        self._arrived: asyncio.Queue[TokenBatch | EngineError | None] = asyncio.Queue()
        self._ended = False

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> TokenBatch:
        if self._ended:
            raise StopAsyncIteration
        item = await self._arrived.get()
        if isinstance(item, TokenBatch):
            return item
        self._ended = True
        if item is None:
            raise StopAsyncIteration
        raise item

    def cancel(self) -> None:
        """Stop decoding within one step or prefill chunk. May be called at any time, also twice, from any thread."""
        self.is_cancelled = True

    def deliver(self, batch: TokenBatch, usage: Usage) -> None:
        """Called on the decode thread: hand over what one step or cycle gave."""
        self.usage = usage
        self._hand_over(batch)

    def end(self, usage: Usage, error: EngineError | None = None) -> None:
        """Called on the decode thread: nothing more will come, because of `error` if there is one."""
        self.usage = usage
        self._hand_over(error)

    def _hand_over(self, item: TokenBatch | EngineError | None) -> None:
        post_to(self._loop, lambda: self._arrived.put_nowait(item))


def post_to(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Run `callback` on the loop; a loop that has closed has nobody left to tell."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
