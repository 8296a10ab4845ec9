"""What a worker answers to a well-meant request."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import openai

from tests.contract.conftest import Worker, chat

QUESTION = "Write two sentences about a river."


async def ask(http: aiohttp.ClientSession, worker: Worker, **more: Any) -> dict[str, Any]:
    async with http.post(f"{worker.url}/v1/chat/completions", json=chat(worker, QUESTION, **more)) as answer:
        assert answer.status == 200, await answer.text()
        return dict(await answer.json())


async def ask_streamed(http: aiohttp.ClientSession, worker: Worker, **more: Any) -> list[dict[str, Any]]:
    """The events of a streamed answer, its [DONE] checked and left out."""
    body = chat(worker, QUESTION, stream=True, **more)
    async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "text/event-stream"
        text = (await answer.read()).decode()
    data = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    assert text.endswith("data: [DONE]\n\n")
    return [json.loads(line) for line in data[:-1]]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


def finish_of(events: list[dict[str, Any]]) -> str:
    reasons = [event["choices"][0]["finish_reason"] for event in events if event["choices"]]
    assert [reason for reason in reasons if reason] == reasons[-1:], "one finish_reason, in the last choice"
    return str(reasons[-1])


async def test_health_answers_200_with_a_json_status(worker: Worker, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{worker.url}/health") as answer:
        assert answer.status == 200
        assert (await answer.json())["status"] == "ok"


async def test_the_model_is_listed(worker: Worker, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{worker.url}/v1/models") as answer:
        listed = await answer.json()
    assert listed["object"] == "list"
    assert worker.kind.model in [model["id"] for model in listed["data"]]


async def test_a_stream_is_events_of_one_answer_and_ends_with_done(worker: Worker, http: aiohttp.ClientSession) -> None:
    events = await ask_streamed(http, worker, max_tokens=12)
    assert len({event["id"] for event in events}) == 1
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert text_of(events)
    assert not any(event.get("usage") for event in events), "usage was not asked for"


async def test_a_stream_tells_its_usage_when_asked(worker: Worker, http: aiohttp.ClientSession) -> None:
    events = await ask_streamed(http, worker, max_tokens=12, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    usage = events[-1]["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["prompt_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12
    assert 0 <= usage["prompt_tokens_details"]["cached_tokens"] < usage["prompt_tokens"]


async def test_max_tokens_gives_that_many_tokens_and_finish_reason_length(
    worker: Worker, http: aiohttp.ClientSession
) -> None:
    for tokens in (1, 7):
        whole = await ask(http, worker, max_tokens=tokens)
        assert whole["usage"]["completion_tokens"] == tokens
        assert whole["choices"][0]["finish_reason"] == "length"
    assert finish_of(await ask_streamed(http, worker, max_tokens=7)) == "length"


async def test_streamed_and_whole_answers_are_the_same_text(worker: Worker, http: aiohttp.ClientSession) -> None:
    whole = await ask(http, worker, max_tokens=24)
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"]["role"] == "assistant"
    assert whole["choices"][0]["message"]["content"] == text_of(await ask_streamed(http, worker, max_tokens=24))


async def test_the_answer_ends_before_a_stop_string(worker: Worker, http: aiohttp.ClientSession) -> None:
    text = (await ask(http, worker, max_tokens=24))["choices"][0]["message"]["content"]
    stop = text[len(text) // 2 :][:6]
    expected = text[: text.index(stop)]
    whole = await ask(http, worker, max_tokens=24, stop=["no such text", stop])
    assert whole["choices"][0]["message"]["content"] == expected
    assert whole["choices"][0]["finish_reason"] == "stop"
    events = await ask_streamed(http, worker, max_tokens=24, stop=stop)
    assert text_of(events) == expected
    assert finish_of(events) == "stop"


async def test_a_plain_completion_is_answered(worker: Worker, http: aiohttp.ClientSession) -> None:
    body = {"model": worker.kind.model, "prompt": "The river", "max_tokens": 6, "temperature": 0}
    async with http.post(f"{worker.url}/v1/completions", json=body) as answer:
        whole = await answer.json()
    assert whole["object"] == "text_completion"
    assert whole["choices"][0]["finish_reason"] == "length"
    assert whole["usage"]["completion_tokens"] == 6
    async with http.post(f"{worker.url}/v1/completions", json=body | {"stream": True}) as answer:
        text = await answer.text()
    data = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    assert data[-1] == "[DONE]"
    parts = [event["choices"][0]["text"] for event in map(json.loads, data[:-1]) if event["choices"]]
    assert "".join(parts) == whole["choices"][0]["text"]


async def test_the_request_id_comes_back(worker: Worker, http: aiohttp.ClientSession) -> None:
    url, headers = f"{worker.url}/v1/chat/completions", {"X-Request-Id": "a-b-c-1"}
    for stream in (False, True):
        body = chat(worker, QUESTION, max_tokens=2, stream=stream)
        async with http.post(url, json=body, headers=headers) as answer:
            await answer.read()
            assert answer.headers["x-request-id"] == "a-b-c-1"


async def test_a_prompt_that_begins_like_an_earlier_one_is_cached(worker: Worker, http: aiohttp.ClientSession) -> None:
    beginning = "The river runs past the old mill and under the bridge. " * 30
    cached = []
    for ending in ("Where to?", "Whence?"):
        body = chat(worker, beginning + ending, max_tokens=1)
        async with http.post(f"{worker.url}/v1/chat/completions", json=body) as answer:
            cached.append((await answer.json())["usage"]["prompt_tokens_details"]["cached_tokens"])
    assert cached[1] > 100


async def test_the_openai_client_is_served(worker: Worker) -> None:
    async with openai.AsyncOpenAI(base_url=f"{worker.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        whole = await client.chat.completions.create(
            model=worker.kind.model,
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=8,
            temperature=0,
        )
        stream = await client.chat.completions.create(
            model=worker.kind.model,
            messages=[{"role": "user", "content": QUESTION}],
            max_tokens=8,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        assert worker.kind.model in [model.id async for model in client.models.list()]
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert whole.choices[0].message.content == streamed
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 8
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 8
