"""Sends one canary, times its stream from outside, and says a rate or why there is none.

rate = (n - k) / (time of the last token - time of the first): n tokens by the server's ``usage``, k of them those that
came with the first read. Whoever cancels the task that runs it ends the request at once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import aiohttp

from supervisor.core.samples import Void
from supervisor.core.speed.decode_rate import FEWEST_TOKENS, timed_tokens
from supervisor.core.speed.prompts import ONE_WORD, canary_prompt
from supervisor.jsontext import decode
from supervisor.shell.probing.token_stream import TokenStream, count_of, said

T = TypeVar("T")

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions", "embeddings": "/v1/embeddings"}

SHORTEST_PREFILL_S = 0.2
"""A shorter time to the first token is mostly not prefill."""

SLOWEST_PREFILL_TOK_S = 50.0
"""A prompt may take this long to read, beyond the timeout, before it is the worker's fault."""

WARMUP_TOKENS = 2

_BUSY = frozenset({429, 503})
_REFUSED_AS_ASKED = frozenset({400, 404, 405, 422, 501})


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One run. ``decode_tok_s`` is a number exactly when ``void`` is None; times are seconds."""

    decode_tok_s: float | None = None
    void: Void | None = None
    detail: str = ""
    tokens: int = 0
    prompt_tokens: int | None = None
    """As the server counts them."""
    cached_tokens: int | None = None
    ttft_s: float | None = None
    took_s: float = 0.0
    """All of it: warm-up and calibration too."""
    prefill_tok_s: float | None = None
    """Of a run with a nonce whose prompt took long enough to read."""
    fastest_prefill_tok_s: float | None = None
    """Of a run with a nonce whose prompt was read too fast to tell: the rate is this, or higher."""


class Trouble(NamedTuple):
    """Why a single token did not come. ``is_busy``: the server says that it has no room now, which is an answer."""

    detail: str
    is_busy: bool = False


@dataclass
class TokenClock:
    """What runs of one worker have taught about its streams; keep one for each worker."""

    tokens_per_chunk: float | None = None
    """Proven by a run whose ``usage`` was seen. Without it a run cannot be cut short, for nobody could count it."""
    takes_extras: bool = True
    """False once it refused the fields that only some servers know."""
    prompt_tokens: dict[int, int] = field(default_factory=dict)
    """What the server counts in a prompt, by its length in characters: a run that is cut short is not told."""
    has_completions: bool = True
    """False once a chat server refused /v1/completions, where no template and no thinking comes between."""

    def way(self, kind: str) -> str:
        """The kind of request that measures a lane of this kind."""
        return "completions" if kind == "chat" and self.has_completions else kind

    def concede(self, kind: str) -> bool:
        """It refused a request: whether there is another way to ask, which is taken from now on."""
        if self.takes_extras:
            self.takes_extras = False
        elif self.way(kind) != kind:
            self.has_completions, self.takes_extras = False, True
        else:
            return False
        return True


class _VoidError(Exception):
    def __init__(self, void: Void, detail: str) -> None:
        super().__init__(detail)
        self.void = void


class _RefusedError(_VoidError):
    """It does not like the request itself."""


@dataclass(frozen=True, slots=True)
class _Asker:
    """A server, and how to ask it."""

    session: aiohttp.ClientSession
    url: str
    model: str
    kind: str
    headers: Mapping[str, str]
    clock: TokenClock
    is_plain: bool = False
    """Whether it asks our engine to leave speculation off."""

    @property
    def way(self) -> str:
        """The kind of request that it sends now."""
        return self.clock.way(self.kind)

    def post(self, body: dict[str, Any]) -> Any:
        """The request's context manager. Its deadline is the caller's ``asyncio.timeout``."""
        return self.session.post(
            self.url.rstrip("/") + PATHS[self.way],
            json=body,
            headers={"Accept-Encoding": "identity", **self.headers},
            timeout=aiohttp.ClientTimeout(total=None),
        )

    def body(self, prompt: str, max_tokens: int, *, is_streamed: bool) -> dict[str, Any]:
        """What is asked: temperature 0, no thinking where the server knows the word."""
        way, has_extras = self.way, self.clock.takes_extras
        if way == "embeddings":
            return {"model": self.model, "input": prompt}
        body: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "temperature": 0, "stream": is_streamed}
        if way == "chat":
            body["messages"] = [{"role": "user", "content": prompt}]
            if has_extras:
                body["chat_template_kwargs"] = {"enable_thinking": False}
        else:
            body["prompt"] = prompt
        if is_streamed and has_extras:
            body["stream_options"] = {"include_usage": True}
        if self.is_plain:
            body["freshlane"] = {"speculation": False}
        return body

    async def whole(self, prompt: str, max_tokens: int) -> dict[str, Any]:
        """An answer in one piece. Raises _VoidError if it is none."""
        async with self.post(self.body(prompt, max_tokens, is_streamed=False)) as answer:
            await _check_status(answer)
            document = decode(await answer.read())
        if document is None or document.get("error"):
            raise _VoidError(Void.FAILED, said(document) if document else "the answer is not JSON")
        return document


async def run_canary(
    session: aiohttp.ClientSession,
    url: str,
    *,
    model: str,
    kind: str,
    headers: Mapping[str, str],
    prompt_tokens: int,
    max_tokens: int,
    max_time_s: float,
    timeout_s: float,
    has_warmup: bool = False,
    has_nonce: bool = False,
    is_plain: bool = False,
    token_clock: TokenClock | None = None,
    progressed: Callable[[], None] = lambda: None,
) -> ProbeResult:
    """Measure the server at ``url`` once; never raises but for cancellation.

    ``kind`` is chat, completions or embeddings. The rate of embeddings is tokens read per second, texts where there is
    no usage; their prompt always has a nonce, for reading is all they do. The run ends at ``max_tokens``, or after
    ``max_time_s`` of decoding if its tokens can be counted without the end. ``timeout_s`` bounds each of its
    requests, and grows by what reading the prompt may take. ``progressed`` is called whenever something came.
    """
    clock, began = token_clock or TokenClock(), _now()
    asker = _Asker(session, url, model, kind, headers, clock, is_plain)
    patience_s = timeout_s + prompt_tokens / SLOWEST_PREFILL_TOK_S
    try:
        if has_warmup:
            async with asyncio.timeout(patience_s):
                await _persistently(asker, lambda: asker.whole(canary_prompt(prompt_tokens), WARMUP_TOKENS))
            progressed()
        prompt = canary_prompt(prompt_tokens, secrets.token_hex(8) if has_nonce or kind == "embeddings" else "")
        if kind == "embeddings":
            result = await _time_embedding(asker, prompt, patience_s)
        else:
            run = _Run(asker, prompt, max_tokens, max_time_s, progressed)
            result = await run.measure(patience_s, has_nonce=has_nonce)
    except _VoidError as trouble:
        result = ProbeResult(void=trouble.void, detail=str(trouble))
    except TimeoutError:
        result = ProbeResult(void=Void.TIMED_OUT, detail=f"no answer within {patience_s:.1f} s")
    except (aiohttp.ClientError, OSError) as trouble:
        result = ProbeResult(void=Void.FAILED, detail=f"{type(trouble).__name__}: {trouble}")
    return replace(result, took_s=_now() - began)


async def one_token(
    session: aiohttp.ClientSession, url: str, *, model: str, kind: str, headers: Mapping[str, str], timeout_s: float
) -> Trouble | None:
    """Ask for a single token: is the worker ready, or still alive? None if it answered, else what went wrong."""
    asker = _Asker(session, url, model, kind, headers, TokenClock(takes_extras=False, has_completions=False))
    try:
        async with asyncio.timeout(timeout_s):
            document = await asker.whole(ONE_WORD, 1)
    except _VoidError as trouble:
        return Trouble(str(trouble), trouble.void is Void.LANE_BUSY)
    except TimeoutError:
        return Trouble(f"no answer within {timeout_s:.1f} s")
    except (aiohttp.ClientError, OSError) as trouble:
        return Trouble(f"{type(trouble).__name__}: {trouble}")
    is_answer = document.get("data") if kind == "embeddings" else document.get("choices")
    return None if is_answer else Trouble("the answer holds nothing")


async def _persistently(asker: _Asker, attempt: Callable[[], Awaitable[T]]) -> T:
    """Ask again in a plainer way while the server does not like how it was asked."""
    while True:
        try:
            return await attempt()
        except _RefusedError:
            if not asker.clock.concede(asker.kind):
                raise


async def _time_embedding(asker: _Asker, prompt: str, patience_s: float) -> ProbeResult:
    began = _now()
    async with asyncio.timeout(patience_s):
        document = await asker.whole(prompt, 0)
    tokens = count_of(document.get("usage"), "prompt_tokens")
    took, vectors = _now() - began, document.get("data")
    if not vectors or not isinstance(vectors, list):
        return ProbeResult(void=Void.NO_TOKENS, detail="the answer holds no embedding")
    return ProbeResult((tokens or len(vectors)) / took, tokens=tokens or 0, prompt_tokens=tokens, ttft_s=took)


class _Run:
    """One streamed, timed request."""

    def __init__(
        self, asker: _Asker, prompt: str, max_tokens: int, max_time_s: float, progressed: Callable[[], None]
    ) -> None:
        self._asker = asker
        self._clock = asker.clock
        self._prompt = prompt
        self._max_tokens = max_tokens
        self._max_time_s = max_time_s
        self._progressed = progressed
        self._stream = TokenStream()
        self._began = 0.0
        self._is_cut = False

    async def measure(self, patience_s: float, *, has_nonce: bool) -> ProbeResult:
        """Raises _VoidError, TimeoutError and what aiohttp raises."""
        try:
            async with asyncio.timeout(patience_s):
                await _persistently(self._asker, self._read)
        except TimeoutError:
            silent_s = _now() - (self._stream.last_at or 0.0)
            if self._stream.chunks == 0 or silent_s > patience_s / 2:
                raise
            self._is_cut = True  # it writes, only slowly: that is a matter for the judge, not a hang
            self._stream.last_at = _now()  # the silence at the end is part of its slowness
        stream = self._stream
        if stream.error:
            raise _VoidError(Void.FAILED, stream.error)
        if stream.first_at is None:
            raise _VoidError(Void.NO_TOKENS, "the stream ended without a token")
        if not (stream.is_complete or self._is_cut):
            raise _VoidError(Void.FAILED, f"the stream broke off after {stream.chunks} chunks")
        async with asyncio.timeout(patience_s):
            tokens = await self._count()
        return self._result(tokens, stream.first_at - self._began, has_nonce=has_nonce)

    async def _read(self) -> None:
        stream = self._stream
        body = self._asker.body(self._prompt, self._max_tokens, is_streamed=True)
        self._began = _now()
        async with self._asker.post(body) as answer:
            await _check_status(answer)
            async for data in answer.content.iter_any():
                stream.feed(data, _now())
                self._progressed()
                if stream.error:
                    return
                if self._has_enough:
                    self._is_cut = not stream.is_complete
                    answer.close()
                    return

    @property
    def _has_enough(self) -> bool:
        per_chunk, stream = self._clock.tokens_per_chunk, self._stream
        if per_chunk is None or stream.lasted_s < self._max_time_s:
            return False
        return (stream.chunks - stream.first_chunks) * per_chunk >= FEWEST_TOKENS

    async def _count(self) -> int:
        """The tokens that came. Raises _VoidError if nobody can tell."""
        clock, stream = self._clock, self._stream
        if stream.tokens and not self._is_cut:
            clock.tokens_per_chunk = stream.tokens / stream.chunks
            return stream.tokens
        if clock.tokens_per_chunk is None and self._is_cut:
            detail = f"only {stream.chunks} chunks came in time, of unknown size"
            raise _VoidError(Void.TOO_FEW_TOKENS, detail)
        if clock.tokens_per_chunk is None:
            await self._calibrate(clock)
        return round(stream.chunks * (clock.tokens_per_chunk or 0.0))

    async def _calibrate(self, clock: TokenClock) -> None:
        """The stream told no usage: ask the same in one piece, and count that."""
        document = await self._asker.whole(self._prompt, self._max_tokens)
        tokens = count_of(document.get("usage"), "completion_tokens")
        if not tokens:
            raise _VoidError(Void.UNMEASURABLE, "no usage, so chunks cannot be told in tokens")
        clock.tokens_per_chunk = tokens / self._stream.chunks

    def _prompt_tokens(self) -> int | None:
        told, known = count_of(self._stream.usage, "prompt_tokens"), self._clock.prompt_tokens
        if told:
            known[len(self._prompt)] = told
        return told or known.get(len(self._prompt))

    def _result(self, tokens: int, ttft_s: float, *, has_nonce: bool) -> ProbeResult:
        stream = self._stream
        prompt_tokens = self._prompt_tokens()
        result = ProbeResult(
            tokens=tokens,
            prompt_tokens=prompt_tokens,
            cached_tokens=count_of(stream.usage.get("prompt_tokens_details"), "cached_tokens"),
            ttft_s=ttft_s,
            detail=f"cut short after {stream.lasted_s:.1f} s" if self._is_cut else "",
        )
        if has_nonce and prompt_tokens:
            if ttft_s >= SHORTEST_PREFILL_S:
                result = replace(result, prefill_tok_s=prompt_tokens / ttft_s)
            else:
                result = replace(result, fastest_prefill_tok_s=prompt_tokens / SHORTEST_PREFILL_S)
        timed = timed_tokens(tokens, stream.chunks, stream.first_chunks)
        if stream.lasted_s <= 0 and tokens > FEWEST_TOKENS:
            return replace(result, void=Void.UNMEASURABLE, detail="all tokens came at once: it does not stream")
        if timed < FEWEST_TOKENS:
            detail = f"{timed} tokens after the first read, fewer than {FEWEST_TOKENS}"
            return replace(result, void=Void.TOO_FEW_TOKENS, detail=detail)
        return replace(result, decode_tok_s=timed / stream.lasted_s)


async def _check_status(answer: aiohttp.ClientResponse) -> None:
    if answer.status == 200:
        return
    text = f"HTTP {answer.status}: {said(decode(await answer.read()))}"
    if answer.status in _BUSY:
        raise _VoidError(Void.LANE_BUSY, text)
    if answer.status in _REFUSED_AS_ASKED:
        raise _RefusedError(Void.UNMEASURABLE, text)
    raise _VoidError(Void.UNMEASURABLE if answer.status < 500 else Void.FAILED, text)


def _now() -> float:
    return asyncio.get_running_loop().time()
