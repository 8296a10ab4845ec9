"""The engine's HTTP face: a real process, a tiny model whose every token is one character."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from engine_process import EngineProcess
from tiny_model import write_tiny_model

from tests.waiting import wait_until

LONG = 400_000
PROMPT = "ABBA0123"
GREEDY = {"temperature": 0, "ignore_eos": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny", max_position_embeddings=1_000_000)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    engine = EngineProcess(folder, "--max-context", "500000")
    yield engine.serving()
    assert engine.close() == 0


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        yield session


async def post(http: aiohttp.ClientSession, url: str, body: Any) -> tuple[int, dict[str, Any]]:
    sent = io.BytesIO(json.dumps(body).encode())
    async with http.post(url, data=sent) as answer:
        return answer.status, await answer.json()


async def complete(http: aiohttp.ClientSession, url: str, **fields: Any) -> dict[str, Any]:
    status, answer = await post(http, f"{url}/v1/completions", {"prompt": PROMPT, **GREEDY, **fields})
    assert status == 200, answer
    return answer


async def events(answer: aiohttp.ClientResponse) -> list[Any]:
    lines = [line.decode().strip() async for line in answer.content]
    datas = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


async def state(http: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with http.get(f"{url}/stats") as answer:
        return await answer.json()


@pytest.mark.parametrize("path", ["chat/completions", "completions"])
async def test_a_stream_says_what_the_whole_answer_says(http, url, path):
    asked = {"messages": [{"role": "user", "content": PROMPT}]} if path.startswith("chat") else {"prompt": PROMPT}
    body = {**asked, **GREEDY, "max_tokens": 30}
    _, whole = await post(http, f"{url}/v1/{path}", body)
    async with http.post(
        f"{url}/v1/{path}", json={**body, "stream": True, "stream_options": {"include_usage": True}}
    ) as answer:
        assert answer.content_type == "text/event-stream"
        *chunks, usage, done = await events(answer)
    assert done == "[DONE]"
    choices = [chunk["choices"][0] for chunk in chunks]
    if path.startswith("chat"):
        assert choices[0]["delta"]["role"] == "assistant"
        text, expected = (
            "".join(choice["delta"].get("content", "") for choice in choices),
            whole["choices"][0]["message"]["content"],
        )
    else:
        text, expected = "".join(choice["text"] for choice in choices), whole["choices"][0]["text"]
    assert text == expected
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["length"]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"] == 30
    assert usage["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_openais_own_client_is_served(url, folder):
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        chat = [{"role": "system", "content": "A"}, {"role": "user", "content": [{"type": "text", "text": "BC"}]}]
        answer = await client.chat.completions.create(model=str(folder), messages=chat, max_tokens=8, temperature=0)
        assert answer.usage.prompt_tokens == len("[A][BC]")
        stream = await client.chat.completions.create(
            model=str(folder), messages=chat, max_tokens=8, temperature=0, stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert text == answer.choices[0].message.content
        assert [model.id async for model in client.models.list()] == [str(folder)]
        with pytest.raises(openai.BadRequestError, match="temperature") as raised:
            await client.chat.completions.create(model=str(folder), messages=chat, temperature=-1)
        assert raised.value.param == "temperature"
        with pytest.raises(openai.NotFoundError, match="is served here"):
            await client.chat.completions.create(model="other", messages=chat)


async def test_a_stop_string_ends_the_text_before_it(http, url):
    text = (await complete(http, url, max_tokens=60))["choices"][0]["text"]
    stop = text[20:23]
    cut = await complete(http, url, max_tokens=60, stop=["never", stop])
    assert cut["choices"][0] == {
        "index": 0,
        "text": text[: text.index(stop)],
        "finish_reason": "stop",
        "logprobs": None,
    }
    assert text.index(stop) < cut["usage"]["completion_tokens"] < 60


async def test_a_seed_gives_the_same_sample_again(http, url):
    first, again, other = [
        (await complete(http, url, max_tokens=40, temperature=1.5, seed=seed))["choices"][0]["text"]
        for seed in (1, 1, 2)
    ]
    assert first == again != other


async def test_token_ids_are_as_good_as_text(http, url):
    ids = [ord(letter) - ord("0") for letter in PROMPT]
    assert (await complete(http, url, prompt=ids))["choices"] == (await complete(http, url))["choices"]


async def test_speculation_changes_no_character(http, url):
    plain = await complete(http, url, prompt="ABC" * 30, max_tokens=200, freshlane={"speculation": False})
    drafted = await complete(http, url, prompt="ABC" * 30, max_tokens=200)
    assert plain["choices"] == drafted["choices"]
    assert plain["freshlane"]["drafted"] == 0


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/v1/completions", {"prompt": PROMPT, "n": 20}, (400, "n: ")),
        ("/v1/completions", {"prompt": ""}, (400, "empty")),
        ("/v1/completions", {"prompt": [999]}, (400, "999 is no token id")),
        ("/v1/completions", {"prompt": PROMPT, "logit_bias": {"48": 1}}, (400, "logit_bias")),
        ("/v1/completions", {"prompt": [1] * 500_000}, (400, "shorten it")),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "A"}], "tools": [{}]}, (400, "tools: ")),
        ("/v1/chat/completions", [], (400, "JSON object")),
        ("/v1/completions", {"prompt": "A" * (17 << 20)}, (413, "exceeded")),
        ("/v1/embeddings", {}, (404, "Not Found")),
        ("/v1/models", {}, (405, "Not Allowed")),
        ("/remedies/dance", {}, (404, "clear_cache")),
    ],
)
async def test_refusals_have_openais_shape_and_say_why(http, url, path, body, refusal):
    status, answer = await post(http, f"{url}{path}", body)
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert status == refusal[0]
    assert refusal[1] in answer["error"]["message"]


async def test_request_ids_are_echoed_or_made(http, url):
    async with http.get(f"{url}/health", headers={"X-Request-Id": "mine-1"}) as answer:
        assert answer.headers["X-Request-Id"] == "mine-1"
    async with http.get(f"{url}/health", headers={"X-Request-Id": "a b" * 90}) as answer:
        assert len(answer.headers["X-Request-Id"]) == 32
    async with http.post(
        f"{url}/v1/completions", json={"prompt": "A", "stream": True}, headers={"X-Request-Id": "mine-2"}
    ) as answer:
        assert answer.headers["X-Request-Id"] == "mine-2"


@pytest.mark.parametrize("streams", [True, False])
async def test_a_client_that_leaves_ends_its_decoding(http, url, streams):
    before = (await state(http, url))["generated_tokens"]
    body = {"prompt": PROMPT, **GREEDY, "max_tokens": LONG, "stream": streams}
    async with aiohttp.ClientSession() as leaving:

        async def ask() -> None:
            async with leaving.post(f"{url}/v1/completions", json=body) as answer:
                await answer.read()

        asking = asyncio.ensure_future(ask())

        async def decodes() -> bool:
            return (await state(http, url))["progress"] == "busy"

        await wait_until(decodes, 20)
        asking.cancel()
        await asyncio.wait({asking})

    async def is_idle() -> bool:
        now = await state(http, url)
        return now["progress"] == "idle" and now["in_flight"] == 0

    await wait_until(is_idle, 20)
    assert (await state(http, url))["generated_tokens"] - before < LONG


async def test_remedies_are_performed(http, url):
    await complete(http, url)
    assert (await state(http, url))["prefix_cache"]["entries"] > 0
    for name in ("clear_cache", "drop_prefix_cache"):
        assert await post(http, f"{url}/remedies/{name}", None) == (200, {"remedy": name, "done": True})
    assert (await state(http, url))["prefix_cache"]["entries"] == 0


async def test_prompts_are_saved_for_this_model_and_loaded_again(http, url, tmp_path):
    folder = {"folder": str(tmp_path / "prefix")}
    await post(http, f"{url}/remedies/drop_prefix_cache", None)
    first = await complete(http, url, prompt="ABCD" * 20, max_tokens=1)
    status, saved = await post(http, f"{url}/prefix/save", folder)
    assert (status, saved["saved_tokens"]) == (200, 80)
    await post(http, f"{url}/remedies/drop_prefix_cache", None)
    assert (await post(http, f"{url}/prefix/load", folder))[1]["restored_tokens"] == 80
    again = await complete(http, url, prompt="ABCD" * 20, max_tokens=1)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 79
    assert again["choices"] == first["choices"]
    damaged = next((tmp_path / "prefix").iterdir())
    damaged.write_bytes(damaged.read_bytes()[:-50])
    assert (await post(http, f"{url}/prefix/load", folder))[1]["restored_tokens"] == 0
    assert (await post(http, f"{url}/prefix/save", {"folder": "relative"}))[0] == 400


async def test_it_answers_while_loading_then_serves_only_who_knows_the_token(http, folder):
    engine = EngineProcess(folder, FRESHLANE_WORKER_TOKEN="secret", FRESHLANE_GENERATION="7")
    try:
        url = engine.listening()
        key = {"Authorization": "Bearer secret"}
        async with http.get(f"{url}/health", headers=key) as answer:
            loading = await answer.json()
            assert (answer.status, loading["status"], loading["generation"]) == (503, "loading", 7)
        async with http.post(f"{url}/v1/completions", headers=key, json={"prompt": "A"}) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (503, "loading")
        engine.line("serving ")
        for path in ("/health", "/stats", "/v1/models"):
            for wrong in ({}, {"Authorization": "Bearer secreT"}, {"Authorization": "secret"}):
                async with http.get(f"{url}{path}", headers=wrong) as answer:
                    assert (answer.status, (await answer.json())["error"]["code"]) == (401, "invalid_api_key")
            async with http.get(f"{url}{path}", headers=key) as answer:
                assert answer.status == 200
    finally:
        assert engine.close() == 0


async def test_sigterm_lets_answers_finish_and_takes_no_new_ones(http, folder):
    engine = EngineProcess(folder)
    try:
        url = engine.serving()
        body = {"prompt": PROMPT, **GREEDY, "max_tokens": 1000, "stream": True}
        async with http.post(f"{url}/v1/completions", json=body) as answer:
            await answer.content.readline()
            engine.terminate()
            engine.line("draining")
            status, refused = await post(http, f"{url}/v1/completions", {"prompt": "A"})
            assert (status, refused["error"]["code"]) == (503, "draining")
            seen = await events(answer)
        assert seen[-1] == "[DONE]"
        assert engine.exit_code() == 0
    finally:
        engine.close()


async def test_what_is_left_at_the_drain_deadline_is_told_so(http, folder):
    engine = EngineProcess(folder, "--drain-timeout", "0.2")
    try:
        url = engine.serving()
        body = {"prompt": PROMPT, **GREEDY, "max_tokens": LONG, "stream": True}
        async with http.post(f"{url}/v1/completions", json=body) as answer:
            await answer.content.readline()
            engine.terminate()
            seen = await events(answer)
        assert seen[-1]["error"]["code"] == "stopped"
        assert engine.exit_code() == 0
    finally:
        engine.close()


def test_sigterm_while_loading_ends_it_at_once(folder):
    engine = EngineProcess(folder)
    engine.listening()
    assert engine.close() == 0


def test_a_model_that_cannot_be_had_is_one_line_and_exit_code_2(tmp_path):
    engine = EngineProcess(tmp_path)
    assert engine.exit_code() == 2
    assert [line for line in engine.lines if "config.json" in line]
    assert not [line for line in engine.lines if "Traceback" in line]
    engine.close()


def test_a_port_that_is_taken_is_one_line_and_exit_code_3(folder, url):
    taken = int(url.rsplit(":", 1)[1])
    engine = EngineProcess(folder, port=taken)
    assert engine.exit_code() == 3
    assert [line for line in engine.lines if f"cannot listen on 127.0.0.1:{taken}" in line]
    engine.close()
