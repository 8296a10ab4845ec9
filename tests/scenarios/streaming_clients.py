"""Clients that stream without a pause, and account for every byte."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tests.fakes import expected_text
from tests.scenarios.quick_lanes import chat


@dataclass
class Answer:
    """What one request came to, as its client saw it."""

    request_id: str
    status: int = 0
    began: float = 0.0
    """Monotonic seconds."""
    took_s: float = 0.0
    sha256: str = ""
    """Of the bytes, comments of ours left out."""
    text: str = ""
    expected: str = ""
    is_complete: bool = False
    is_left: bool = False
    """Its client went away before the end."""
    error: str = ""

    @property
    def is_whole(self) -> bool:
        return self.status == 200 and self.is_complete and not self.error and self.text == self.expected


@dataclass
class Clients:
    """So many clients at once, each with one stream after the other."""

    url: str
    model: str
    lengths: tuple[int, ...] = (8, 8, 8, 8, 8, 8, 16, 64)
    answers: list[Answer] = field(default_factory=list)
    inflight: int = 0
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, count: int, seed: int = 0) -> None:
        """Stream until `stop`, each client in its own rhythm."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session, asyncio.TaskGroup() as group:
            for client in range(count):
                group.create_task(self._stream_on(session, client, random.Random(seed + client)))

    def stop(self) -> None:
        """Let each finish the stream it has."""
        self._stopping.set()

    async def _stream_on(self, session: aiohttp.ClientSession, client: int, dice: random.Random) -> None:
        number = 0
        while not self._stopping.is_set():
            number += 1
            request_id, length = f"client-{client}-{number}", dice.choice(self.lengths)
            self.inflight += 1
            try:
                self.answers.append(await stream(session, self.url, self.model, request_id, length))
            finally:
                self.inflight -= 1


async def stream(
    session: aiohttp.ClientSession,
    url: str,
    model: str,
    request_id: str,
    length: int,
    *,
    leaves_after: int | None = None,
) -> Answer:
    """Ask for so many tokens and account for the answer; the client may leave after so many events."""
    answer = Answer(request_id, began=time.monotonic(), expected=expected_text(request_id, length))
    body = chat(request_id, max_tokens=length, model=model)
    content = bytearray()
    try:
        headers = {"X-Request-Id": request_id}
        async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as response:
            answer.status = response.status
            async for piece in response.content.iter_any():
                content += piece
                if leaves_after is not None and content.count(b"\n\n") > leaves_after:
                    answer.is_left = True
                    break  # the block closes the connection, since there is more to read
    except (aiohttp.ClientError, TimeoutError) as error:
        answer.error = repr(error)
    answer.took_s = time.monotonic() - answer.began
    if answer.status == 200 and not answer.is_left:
        read(answer, bytes(content))
    if answer.status != 200:
        answer.error = answer.error or content.decode(errors="replace")
    return answer


def read(answer: Answer, content: bytes) -> None:
    """Take the stream apart; comments of ours are not the worker's bytes."""
    own = b"".join(part for part in content.split(b"\n\n") if part.startswith(b": freshlane"))
    events = [part + b"\n\n" for part in content.split(b"\n\n") if part and not part.startswith(b": freshlane")]
    answer.sha256 = hashlib.sha256(b"".join(events)).hexdigest()
    assert not own or b"data" not in own
    for event in events:
        line = event.strip()
        if line == b"data: [DONE]":
            answer.is_complete = True
        elif line.startswith(b"data: "):
            document = json.loads(line.removeprefix(b"data: "))
            if "error" in document:
                answer.error = str(document["error"])
            for choice in document.get("choices", ()):
                answer.text += choice.get("delta", {}).get("content") or ""


def digests(path: Path) -> dict[str, str]:
    """What the workers say they sent, by request id; of a request that was sent twice, the last."""
    lines = (json.loads(line) for line in path.read_text().splitlines())
    return {line["request_id"]: line["sha256"] for line in lines}
