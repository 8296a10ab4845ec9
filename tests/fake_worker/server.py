"""The server: connections, paths, slots, and the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from tests.fake_worker import dialects, holders, notes
from tests.fake_worker.asks import read_ask
from tests.fake_worker.generation import CrashedError, Generation
from tests.fake_worker.knobs import LiveKnobs
from tests.fake_worker.prefix import BLOCK_TOKENS, PrefixCache
from tests.fake_worker.speed import Speed, count_spawn
from tests.fake_worker.tally import Tally
from tests.fake_worker.wire import Answer, GoneError, Reader, Refused, Request, read_request
from tests.fake_worker.words import count_tokens

REMEDIES = ("clear_cache", "drop_prefix_cache", "speculation_off")
KINDS = {"/v1/chat/completions": "chat", "/v1/completions": "completions", "/v1/responses": "responses"}
CRASH_CODE = 70
Handler = Callable[[Request, Answer], Awaitable[None]]


class Server:
    def __init__(self, knobs: LiveKnobs) -> None:
        self._knobs = knobs
        self._started = time.monotonic()
        self._spawn = count_spawn(knobs().spawn_counter)
        self._speed = Speed(knobs, self._spawn, self._started)
        self._tally = Tally(knobs, self._speed, self._started)
        self._cache = PrefixCache(knobs().prefix_blocks)
        self._ballast: list[bytearray] = []
        self._idle: set[asyncio.StreamWriter] = set()
        self._open = 0  # requests being answered
        self._stopping = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._ready_at = 0.0
        slots = 1 if knobs().one_at_a_time else knobs().slots
        self._slots = asyncio.Semaphore(slots) if slots else None

    # --- life ---

    async def run(self) -> int:
        """Serves until a signal ends it; gives the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        knobs = self._knobs()
        delayed = not knobs.slow_spawns or self._spawn < knobs.slow_spawns
        self._hold_memory(knobs.memory_mb)
        if knobs.grandchild in ("idle", "memory"):
            holders.spawn(knobs)
        if delayed and await self._stopped_within(knobs.start_delay):
            return 0
        if self._spawn < knobs.fail_spawns or (knobs.exit_code and not knobs.fail_spawns):
            return knobs.exit_code or 1
        self._ready_at = time.monotonic() + (knobs.load_delay if delayed else 0)
        server = await loop.create_server(self._protocol, "127.0.0.1", knobs.port, backlog=1024)
        if knobs.grandchild == "port":
            holders.spawn(knobs)
        async with asyncio.TaskGroup() as tasks:
            flood = tasks.create_task(self._flood())
            closing = tasks.create_task(self._close_when_told(server))
            await self._stopping.wait()
            server.close()
            for writer in self._idle:
                writer.close()
            await self._quiet.wait()
            if self._knobs().sigterm == "slow":
                await asyncio.sleep(self._knobs().term_seconds)
            flood.cancel()
            closing.cancel()
        return 0

    async def _close_when_told(self, server: asyncio.Server) -> None:
        is_open = True
        while is_open:
            await asyncio.sleep(0.02)
            is_open = self._knobs().listener == "open"
        server.close()
        for writer in self._idle:
            writer.close()

    def _on_signal(self) -> None:
        choice = self._knobs().sigterm
        if choice == "now":
            os._exit(0)
        if choice != "ignored":
            self._stopping.set()

    async def _stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()

    async def _flood(self) -> None:
        line = b"x" * 79 + b"\n"
        while True:
            await asyncio.sleep(0.05)
            if rate := self._knobs().flood:
                os.write(1, line * max(1, round(rate * 0.05 / len(line))))  # blocks, as print does, when nobody reads

    def _hold_memory(self, megabytes: float) -> None:
        if megabytes:
            self._ballast.append(bytearray(b"\1") * round(megabytes * 1_000_000))

    # --- connections ---

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        return asyncio.StreamReaderProtocol(Reader(), self._connection)  # type: ignore[arg-type]

    async def _connection(self, reader: Reader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self._idle.add(writer)
                request = await read_request(reader, writer)
                self._idle.discard(writer)
                if request is None or not await self._answered(request, reader, writer):
                    break
        except (ValueError, ConnectionError, asyncio.LimitOverrunError):
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        finally:
            self._idle.discard(writer)
            writer.close()

    async def _answered(self, request: Request, reader: Reader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may serve another request."""
        keep = request.headers.get("connection", "").lower() != "close" and not self._stopping.is_set()
        answer = Answer(reader, writer, keep)
        if "x-request-id" in request.headers:
            answer.extra_headers["x-request-id"] = request.headers["x-request-id"]
        self._open += 1
        self._quiet.clear()
        try:
            await self._handle(request, answer)
        except GoneError:
            return False
        finally:
            self._open -= 1
            if not self._open:
                self._quiet.set()
        return answer.keep_alive and not self._stopping.is_set()

    async def _handle(self, request: Request, answer: Answer) -> None:
        notes.note_request(self._knobs(), request)
        try:
            self._check_token(request)
            await self._handler(request)(request, answer)
        except CrashedError:
            os._exit(CRASH_CODE)  # no goodbye, no flush
        except Refused as refused:
            if answer.status:
                answer.reset()
                raise GoneError from refused
            await answer.json(refused.status, refused.body)

    def _check_token(self, request: Request) -> None:
        token = os.environ.get("FRESHLANE_WORKER_TOKEN", "")
        if self._knobs().require_token and request.headers.get("authorization") != f"Bearer {token}":
            raise Refused(401, "The token is missing or wrong", "invalid_api_key")

    def _handler(self, request: Request) -> Handler:
        paths: dict[str, tuple[str, Handler]] = {
            "/health": ("GET", self._health),
            "/stats": ("GET", self._stats),
            "/v1/models": ("GET", self._models),
            "/v1/embeddings": ("POST", self._embed),
            "/prefix/save": ("POST", self._prefix),
            "/prefix/load": ("POST", self._prefix),
            **dict.fromkeys(KINDS, ("POST", self._generate)),
            **dict.fromkeys([f"/remedies/{name}" for name in REMEDIES], ("POST", self._remedy)),
        }
        if request.path not in paths:
            raise Refused(404, f"There is no {request.path} here", "not_found")
        method, handler = paths[request.path]
        if request.method != method:
            raise Refused(405, f"{request.path} takes {method}, not {request.method}", "method_not_allowed")
        return handler

    # --- paths ---

    async def _health(self, request: Request, answer: Answer) -> None:
        knobs = self._knobs()
        if knobs.health == "hang":
            await answer.wait_for_goodbye()
            raise GoneError
        async with self._slot() if knobs.one_at_a_time else contextlib.nullcontext():
            if knobs.health == "500":
                raise Refused(500, "The worker is ill, as it was told to be")
            if not self._loaded:
                await answer.json(503, {"status": "loading"})
                return
            await answer.json(200, {"status": knobs.health_status, "model": knobs.model})

    @property
    def _loaded(self) -> bool:
        return time.monotonic() >= self._ready_at

    async def _stats(self, request: Request, answer: Answer) -> None:
        if self._knobs().stats == "none":
            raise Refused(404, "There is no /stats here", "not_found")
        await answer.json(200, self._tally.snapshot() | {"prefix_tokens": len(self._cache) * BLOCK_TOKENS})

    async def _models(self, request: Request, answer: Answer) -> None:
        names = filter(None, (self._knobs().model, self._knobs().second_model))
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "fake"} for name in names]
        await answer.json(200, {"object": "list", "data": data})

    async def _remedy(self, request: Request, answer: Answer) -> None:
        name, how = request.path.rpartition("/")[2], self._knobs().remedies
        self._tally.calls.append(name)
        await self._fail_as_told(how, answer, "no remedies")
        if name == "drop_prefix_cache":
            self._cache.drop()
        if name == self._knobs().cured_by:
            self._speed.cure(self._tally.served)
        await answer.json(200, {"remedy": name, "done": True})

    async def _prefix(self, request: Request, answer: Answer) -> None:
        folder = request.json().get("folder")
        if not isinstance(folder, str):
            raise Refused(400, "folder must be a path", param="folder")
        name, how = request.path.rpartition("/")[2], self._knobs().prefix
        self._tally.calls.append(f"prefix_{name}")
        await self._fail_as_told(how, answer, "no prefix cache")
        await answer.json(200, self._cache.save(Path(folder)) if name == "save" else self._cache.load(Path(folder)))

    @staticmethod
    async def _fail_as_told(how: str, answer: Answer, lacking: str) -> None:
        if how == "hang":
            await answer.wait_for_goodbye()
            raise GoneError
        if how != "ok":
            raise Refused(404 if how == "none" else 500, lacking)

    async def _embed(self, request: Request, answer: Answer) -> None:
        given = request.json().get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise Refused(400, "input must be a text or a list of texts", param="input")
        self._tally.requests += 1
        vectors = [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:16]] for text in texts]
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        used = sum(map(count_tokens, texts))
        await asyncio.sleep(used / self._speed.rate(self._tally.served, self._speed.draw_luck(), 0))
        usage = {"prompt_tokens": used, "total_tokens": used}
        told = {} if self._knobs().usage == "never" else {"usage": usage}
        await answer.json(200, {"object": "list", "data": data, "model": self._knobs().model, **told})
        self._tally.served += 1

    # --- generation ---

    async def _generate(self, request: Request, answer: Answer) -> None:
        knobs, tally = self._knobs(is_fresh=True), self._tally
        if not self._loaded:
            raise Refused(503, "The model is loading")
        ask = read_ask(KINDS[request.path], request.json())
        if knobs.strict_model and ask.model not in (knobs.model, knobs.second_model):
            raise Refused(404, f"There is no model {ask.model!r} here", "model_not_found", "model")
        number, began = tally.requests, time.monotonic()
        before = (tally.generated_tokens, tally.steps, tally.decode_seconds)
        tally.requests += 1
        generation = Generation(
            ask,
            answer,
            identity=f"{os.getpid()}-{number}",
            mode=self._mode(number, request),
            knobs=self._knobs,
            speed=self._speed,
            tally=tally,
        )
        try:
            async with self._slot():
                if answer.gone:
                    raise GoneError
                await generation.run(self._cache)
        finally:
            tally.served += 1
            self._hold_memory(self._knobs().growth_mb)
            dialects.tell_answer(
                self._knobs(),
                tally.generated_tokens - before[0],
                tally.steps - before[1],
                tally.decode_seconds - before[2],
                ask.prompt_tokens,
            )
            notes.note_answer(self._knobs(), request, answer.status, generation.tape, began)
            notes.note_age(self._knobs(), tally.served, self._started, self._speed.base(tally.served))

    def _mode(self, number: int, request: Request) -> str:
        knobs = self._knobs()
        if knobs.crash_marker and knobs.crash_marker.encode() in request.body:
            return "crash"
        if knobs.crash_after and number >= knobs.crash_after:
            return "crash"
        if number < knobs.mode_after or (knobs.mode_for and number >= knobs.mode_after + knobs.mode_for):
            return "ok"
        return knobs.mode

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield
