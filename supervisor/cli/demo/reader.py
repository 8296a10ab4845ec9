"""The demo's client: streams one answer after the other, as any OpenAI client would, and keeps what it was told."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from supervisor.cli.sse import parse_events

MAX_TOKENS = 16
ANSWER_WITHIN_S = 300.0
"""A held stream gets comments all the while; only the whole has a deadline."""


@dataclass
class Answer:
    """One answer, as its client saw it. Times are the event loop's."""

    question: str
    asked_at: float
    first_at: float | None = None
    ended_at: float | None = None
    text: str = ""
    tokens: int = 0
    error: str = ""

    @property
    def sha256(self) -> str:
        """Of the text, hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether it came to its proper end."""
        return self.ended_at is not None and not self.error and bool(self.text)

    @property
    def waited_s(self) -> float:
        """From asking to the first token."""
        return (self.first_at or self.asked_at) - self.asked_at

    def crossed(self, begin: float, end: float) -> bool:
        """Whether it was asked before ``begin``, ended after it, and had begun to stream by ``end``."""
        has_begun = self.first_at is not None and self.first_at < end
        return has_begun and self.asked_at <= begin < (self.ended_at or end)

    def waited_at(self, at: float) -> bool:
        """Whether it was asked, and nothing had come yet."""
        return self.asked_at <= at <= (self.first_at or at)


@dataclass
class Reader:
    """Asks ``questions`` in turn. ``answers`` holds all, the last may be under way."""

    url: str
    model: str
    questions: Sequence[str]
    answers: list[Answer] = field(default_factory=list)
    _is_enough: bool = False

    async def read_each_once(self) -> list[Answer]:
        """One answer to each question."""
        async with aiohttp.ClientSession() as session:
            return [await self._ask(session, question) for question in self.questions]

    async def read_on(self) -> None:
        """Until ``stop``; the answer under way is read to its end."""
        async with aiohttp.ClientSession() as session:
            while not self._is_enough:
                await self._ask(session, self.questions[len(self.answers) % len(self.questions)])

    def stop(self) -> None:
        """Ask nothing more."""
        self._is_enough = True

    async def _ask(self, session: aiohttp.ClientSession, question: str) -> Answer:
        loop = asyncio.get_running_loop()
        answer = Answer(question, loop.time())
        self.answers.append(answer)
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._stream(session, answer)
        except (aiohttp.ClientError, OSError) as error:
            answer.error = str(error) or type(error).__name__
        answer.ended_at = loop.time()
        return answer

    async def _stream(self, session: aiohttp.ClientSession, answer: Answer) -> None:
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": answer.question}],
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
            "stream": True,
        }
        timeout = aiohttp.ClientTimeout(total=None)
        async with session.post(f"{self.url}/v1/chat/completions", json=body, timeout=timeout) as response:
            if response.status != 200:
                answer.error = f"HTTP {response.status}: {(await response.text())[:200]}"
                return
            is_ended = False
            async for event in parse_events(response.content):
                is_ended = is_ended or event.data == "[DONE]"
                _take(answer, event.document())
            if not is_ended:
                answer.error = answer.error or "the stream broke off"


def _take(answer: Answer, document: dict[str, object]) -> None:
    if "error" in document:
        answer.error = str(document["error"])
    choices = document.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        piece = (choice.get("delta") or {}).get("content")
        if piece:
            answer.first_at = answer.first_at or asyncio.get_running_loop().time()
            answer.tokens += 1
            answer.text += piece
