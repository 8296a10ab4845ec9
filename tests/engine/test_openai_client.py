"""What OpenAI's own client can ask for, of a real engine process with a tiny random model that can write JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from engine_process import EngineProcess
from tiny_model import EOS, JSON_WORDS, write_tiny_model

CHAT = [{"role": "user", "content": "abc"}]
PLAIN = {"chat_template_kwargs": {"enable_thinking": False}}
THINK_END = JSON_WORDS.index("</think>")
SCHEMA = {
    "type": "object",
    "properties": {"set": {"type": "array", "items": {"enum": [1, "é", None]}, "minItems": 1, "maxItems": 5}},
    "required": ["set"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "set", "strict": True, "schema": SCHEMA}}
TOOLS = [
    {"type": "function", "function": {"name": "use", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "see", "parameters": {"additionalProperties": False}}},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny", is_json=True)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    engine = EngineProcess(folder)
    yield engine.serving()
    assert engine.close() == 0


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def ask(client, folder):
    async def asked(**fields: Any):
        extra = {**PLAIN, **fields.pop("extra_body", {})}
        asking = {"messages": CHAT, "max_tokens": 100, "temperature": 0, **fields}
        return await client.chat.completions.create(model=str(folder), **asking, extra_body=extra)

    return asked


@pytest.fixture
def complete(client, folder):
    async def completed(**fields: Any):
        asking = {"prompt": "abc", "max_tokens": 20, "temperature": 0, **fields}
        return await client.completions.create(model=str(folder), **asking)

    return completed


@pytest.mark.parametrize("seed", range(3))
async def test_a_json_schema_is_kept(ask, seed):
    answer = await ask(response_format=FORMAT, temperature=1, seed=seed)
    value = json.loads(answer.choices[0].message.content)
    assert all(item in (1, "é", None) for item in value["set"])
    assert answer.choices[0].finish_reason == "stop"
    stream = await ask(response_format=FORMAT, temperature=1, seed=seed, stream=True)
    assert (
        "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == answer.choices[0].message.content
    )


async def test_json_mode_begins_an_object_and_is_cut_only_by_max_tokens(ask):
    answer = await ask(response_format={"type": "json_object"}, max_tokens=300)
    choice = answer.choices[0]
    assert choice.message.content.startswith("{")
    if choice.finish_reason == "stop":
        assert isinstance(json.loads(choice.message.content), dict)


async def test_a_schema_costs_nothing_of_what_drafts_keep(ask):
    answers = [
        await ask(response_format=FORMAT, temperature=1, seed=5, extra_body={"speculation": speculation})
        for speculation in ({"method": "off"}, {"method": "ngram", "max_tokens": 3}, {})
    ]
    assert len({answer.choices[0].message.content for answer in answers}) == 1


async def test_reasoning_is_told_apart_and_the_schema_begins_after_it(ask):
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    whole = await ask(extra_body=thinking, max_tokens=10)
    assert whole.choices[0].message.content == ""
    assert whole.choices[0].message.reasoning_content
    asked = {"response_format": FORMAT, "temperature": 1, "seed": 3, "logit_bias": {str(THINK_END): 2, str(EOS): -100}}
    message = (await ask(extra_body=thinking, max_tokens=300, **asked)).choices[0].message
    assert json.loads(message.content)["set"]
    assert "</think>" not in message.content + message.reasoning_content
    stream = await ask(extra_body=thinking, max_tokens=300, **asked, stream=True)
    deltas = [chunk.choices[0].delta async for chunk in stream]
    assert "".join(delta.content or "" for delta in deltas) == message.content
    reasoned = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert reasoned == message.reasoning_content


@pytest.mark.parametrize("streams", [True, False])
async def test_a_call_can_be_forced(ask, streams):
    named = {"type": "function", "function": {"name": "see"}}
    for choice, names in (("required", {"use", "see"}), (named, {"see"})):
        asked = {"tools": TOOLS, "tool_choice": choice, "temperature": 1, "seed": 2}
        if streams:
            chunks = [chunk.choices[0] async for chunk in await ask(**asked, stream=True)]
            [call] = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
            finish = chunks[-1].finish_reason
        else:
            answer = (await ask(**asked)).choices[0]
            [call], finish = answer.message.tool_calls, answer.finish_reason
        assert call.function.name in names
        assert isinstance(json.loads(call.function.arguments), dict)
        assert finish == "tool_calls"


async def test_no_call_is_made_where_none_may_be(ask):
    for fields in ({"tools": TOOLS, "tool_choice": "none"}, {"tools": TOOLS, "tool_choice": "auto"}):
        assert (await ask(**fields, max_tokens=5)).choices[0].message.content is not None


async def test_log_probabilities_of_a_chat_streamed_and_not(ask):
    asked = {"logprobs": True, "top_logprobs": 3, "max_tokens": 12}
    choice = (await ask(**asked)).choices[0]
    content = choice.logprobs.content
    count = 12 if choice.finish_reason == "length" else len(content)
    assert len(content) == count
    spelled = b"".join(bytes(entry.bytes) for entry in content).decode(errors="replace")
    assert spelled == choice.message.content
    for entry in content:
        assert entry.logprob == entry.top_logprobs[0].logprob <= 0
        assert [top.logprob for top in entry.top_logprobs] == sorted(top.logprob for top in entry.top_logprobs)[::-1]
    chunks = [chunk.choices[0] async for chunk in await ask(**asked, stream=True)]
    streamed = [entry for chunk in chunks if chunk.logprobs for entry in chunk.logprobs.content]
    assert [entry.token for entry in streamed] == [entry.token for entry in content]
    assert (await ask()).choices[0].logprobs is None


async def test_log_probabilities_of_a_completion(complete):
    choice = (await complete(logprobs=2)).choices[0]
    scores = choice.logprobs
    assert len(scores.tokens) == len(scores.token_logprobs) == len(scores.top_logprobs) == len(scores.text_offset)
    assert all(2 <= len(top) <= 3 for top in scores.top_logprobs)
    for token, offset in zip(scores.tokens, scores.text_offset, strict=True):
        if not token.startswith("bytes:"):
            assert choice.text[offset:].startswith(token)


async def test_several_choices_share_a_prompt_and_the_first_is_what_one_alone_is(ask):
    asked = {"temperature": 1, "seed": 11, "max_tokens": 30}
    alone = await ask(**asked)
    answer = await ask(**asked, n=4)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    texts = [choice.message.content for choice in answer.choices]
    assert texts[0] == alone.choices[0].message.content
    assert len(set(texts)) == 4
    assert answer.usage.prompt_tokens == alone.usage.prompt_tokens
    assert answer.usage.completion_tokens > 2 * alone.usage.completion_tokens
    stream = await ask(**asked, n=4, stream=True, stream_options={"include_usage": True})
    streamed, order = [""] * 4, []
    async for chunk in stream:
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
            order.append(choice.index)
        usage = chunk.usage
    assert streamed == texts
    assert order != sorted(order), "they come as they are decoded"
    assert usage.completion_tokens == answer.usage.completion_tokens


async def test_several_completions_at_once(complete):
    answer = await complete(n=3, temperature=1, seed=1, logprobs=1)
    assert len({choice.text for choice in answer.choices}) == 3
    assert all(len(choice.logprobs.tokens) <= 20 for choice in answer.choices)


async def test_a_longer_prompt_is_fed_once_for_all_choices(client, ask, url):
    prompt = [{"role": "user", "content": "abcdefg" * 20}]
    answer = await ask(messages=prompt, n=3, max_tokens=5, temperature=1)
    stats = json.loads((await client._client.get(f"{url}/stats")).text)
    assert answer.usage.prompt_tokens_details.cached_tokens < 140
    again = await ask(messages=prompt, n=3, max_tokens=5, temperature=1)
    assert again.usage.prompt_tokens_details.cached_tokens >= 140
    later = json.loads((await client._client.get(f"{url}/stats")).text)
    assert later["prefilled_tokens"] - stats["prefilled_tokens"] <= 1
    assert later["requests"] - stats["requests"] == 1


async def test_penalties_biases_seeds_and_stops_do_what_they_say(ask):
    asked = {"max_tokens": 30, "temperature": 0}
    text = (await ask(**asked)).choices[0].message.content
    banned = JSON_WORDS.index("e")
    assert "e" not in (await ask(**asked, logit_bias={str(banned): -100})).choices[0].message.content
    assert (await ask(**asked, frequency_penalty=2, presence_penalty=2)).choices[0].message.content != text
    cut = await ask(**asked, stop=[text[4:7]])
    assert cut.choices[0].message.content == text[: text.index(text[4:7])]
    assert cut.choices[0].finish_reason == "stop"
    short = await ask(max_tokens=openai.NOT_GIVEN, max_completion_tokens=3, temperature=0)
    assert (short.usage.completion_tokens, short.choices[0].finish_reason) == (3, "length")


BAD_SCHEMA = {"type": "object", "properties": {"a": {"type": "strin"}}}


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BAD_SCHEMA}}},
            "response_format.json_schema.schema.properties.a",
            "strin",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": BAD_SCHEMA}}]},
            "tools[0].function.parameters.properties.a",
            "strin",
        ),
        ({"n": 99}, "n", "between 1 and 16"),
        ({"top_logprobs": 2}, "top_logprobs", "set logprobs to true"),
        ({"extra_body": {"functions": [{}]}}, "functions", "use tools"),
        ({"extra_body": {"speculation": {"method": "dflash"}}}, "speculation.method", "use off, auto, ngram"),
        ({"extra_body": {"speculation": {"k": 3}}}, "speculation.k", "method and max_tokens"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_the_field_and_the_remedy(ask, fields, param, said):
    if "tools" in fields:
        fields["tool_choice"] = "required"
    with pytest.raises(openai.BadRequestError, match=said) as raised:
        await ask(**fields)
    assert raised.value.param == param
