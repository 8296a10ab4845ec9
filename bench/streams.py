"""One stream, timed by a client that does as little as possible beside."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

FIRST_TOKEN = b'"content": "'
ROLE = b'"role"'
DONE = b"data: [DONE]"
DEADLINE_S = 300.0


@dataclass(frozen=True)
class Measured:
    """Seconds from the request to the first token, and from there to the last; the events in between."""

    first_token_s: float
    decode_s: float
    events: int

    @property
    def rate(self) -> float:
        """Events a second after the first token."""
        return (self.events - 1) / self.decode_s


async def measure_stream(port: int, prompt: str, tokens: int, delay_s: float = 0.0) -> Measured:
    """Ask for ``tokens`` tokens after ``delay_s`` seconds, and time them."""
    await asyncio.sleep(delay_s)
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            return await _measure(reader, writer, prompt, tokens)
        finally:
            writer.close()
            await writer.wait_closed()


async def _measure(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, prompt: str, tokens: int) -> Measured:
    message = {"role": "user", "content": prompt}
    body = json.dumps({"model": "lane", "messages": [message], "max_tokens": tokens, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    sent = time.perf_counter()
    writer.write(head.encode() + b"Content-Type: application/json\r\nConnection: close\r\n\r\n" + body)
    first = last = 0.0
    events = 0
    while line := await reader.readline():
        if line.startswith(DONE):
            break
        if FIRST_TOKEN in line and ROLE not in line:
            last = time.perf_counter()
            first = first or last
            events += 1
    if events != tokens:
        raise RuntimeError(f"{events} events came for {tokens} tokens")
    return Measured(first - sent, last - first, events)
