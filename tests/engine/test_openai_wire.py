"""Requests and answers of OpenAI's API, as values."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import FieldError, RequestError
from engine.openai_answers import Answer, speculation_object, usage_object
from engine.openai_wire import parse_chat, parse_completion
from engine.request import NO_SPECULATION, Sampling, Speculation, Usage
from engine.tool_calls import ToolCall

TOOLS = [{"type": "function", "function": {"name": "f"}}]
HELLO = [{"role": "user", "content": "hello"}]


def chat(**fields: object):
    return parse_chat(json.dumps({"messages": HELLO, **fields}).encode())


def completion(**fields: object):
    return parse_completion(json.dumps({"prompt": "hello", **fields}).encode())


def test_a_bare_chat_has_openais_defaults():
    call = chat()
    assert call.messages == HELLO
    assert call.options.sampling == Sampling()
    assert (call.options.max_tokens, call.options.stream, call.options.include_usage) == (None, False, False)
    assert (call.options.stops, call.options.ignore_eos, call.options.speculation) == ((), False, Speculation())


def test_every_sampling_field_arrives():
    call = chat(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=-0.2,
        repetition_penalty=1.1,
        logit_bias={"5": -100, "6": 2.5},
    )
    assert call.options.sampling == Sampling(
        0.5, 0.9, 40, 0.05, 7, 1.1, presence_penalty=0.1, frequency_penalty=-0.2, logit_bias={5: -100.0, 6: 2.5}
    )


def test_null_is_as_good_as_absent():
    names = ["temperature", "top_p", "seed", "stop", "stream", "max_tokens", "tools", "logit_bias", "n", "logprobs"]
    assert chat(**dict.fromkeys(names)) == chat()


@pytest.mark.parametrize(
    ("fields", "cap"),
    [({"max_tokens": 5}, 5), ({"max_completion_tokens": 6}, 6), ({"max_tokens": 5, "max_completion_tokens": 6}, 6)],
)
def test_the_newer_name_of_the_token_limit_wins(fields, cap):
    assert chat(**fields).options.max_tokens == cap


def test_a_completion_gives_sixteen_tokens_unless_told_otherwise():
    assert completion().options.max_tokens == 16
    assert completion(max_tokens=3).options.max_tokens == 3


def test_text_parts_are_joined_and_developers_are_the_system():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    call = chat(messages=[{"role": "developer", "content": "s"}, {"role": "user", "content": parts}])
    assert call.messages == [{"role": "system", "content": "s"}, {"role": "user", "content": "ab"}]


def test_an_assistants_tool_calls_need_no_content():
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    call = chat(messages=[*HELLO, {"role": "assistant", "content": None, "tool_calls": calls}])
    function = call.messages[1]["tool_calls"][0]["function"]
    assert function == {"name": "f", "arguments": {}}, "templates want an object"


def test_tools_go_unless_none_may_be_called():
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert chat(tools=tools).tools == tools
    assert chat(tools=tools, tool_choice="none").tools == []


@pytest.mark.parametrize(
    ("fields", "speculation"),
    [
        ({"speculation": {"method": "off"}}, NO_SPECULATION),
        ({"speculation": {"method": "ngram", "max_tokens": 3}}, Speculation("ngram", 3)),
        ({"speculation": {"max_tokens": 0}}, Speculation("auto", 0)),
        ({"freshlane": {"speculation": False}}, NO_SPECULATION),
        ({"freshlane": {"speculation": True}}, Speculation()),
    ],
)
def test_a_request_may_say_how_it_is_drafted(fields, speculation):
    assert chat(**fields).options.speculation == completion(**fields).options.speculation == speculation


def test_answers_of_a_given_form_are_read():
    named = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {"type": "array"}}}
    assert chat(response_format=named).schema == {"type": "array"}
    assert chat(response_format={"type": "json_object"}).schema == {"type": "object"}
    assert chat(response_format={"type": "text"}).schema is None
    assert chat(response_format={"type": "json_object"}, tools=TOOLS, tool_choice="none").tools == []
    forced = {0: {"name": "f", "parameters": {"type": "object"}}}
    for choice in ("required", {"type": "function", "function": {"name": "f"}}):
        assert chat(tools=TOOLS, tool_choice=choice).forced == forced
    assert chat(tools=TOOLS, tool_choice="auto").forced == {}


def test_log_probabilities_and_choices_are_read():
    assert chat(logprobs=True).options.top_logprobs == completion(logprobs=0).options.top_logprobs == 0
    assert chat(logprobs=True, top_logprobs=20).options.top_logprobs == 20
    assert chat(logprobs=False).options.top_logprobs is completion(logprobs=False).options.top_logprobs is None
    assert (chat(n=3).options.choices, completion(n=3, best_of=3).options.choices) == (3, 3)


@pytest.mark.parametrize("stop", ["x", ["x"], ["x", "yz"]])
def test_stop_is_a_string_or_several(stop):
    assert chat(stop=stop).options.stops == tuple([stop] if isinstance(stop, str) else stop)


@pytest.mark.parametrize("prompt", ["ab", ["ab"]])
def test_a_prompt_is_a_string(prompt):
    assert completion(prompt=prompt).prompt == "ab"


@pytest.mark.parametrize("prompt", [[1, 2], [[1, 2]]])
def test_or_token_ids(prompt):
    assert completion(prompt=prompt).prompt == (1, 2)


def test_a_top_p_of_zero_leaves_the_likeliest_token():
    assert chat(top_p=0).options.sampling.top_k == 1


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("n", {"n": 0}),
        ("n", {"n": 17}),
        ("logprobs", {"logprobs": 1}),
        ("top_logprobs", {"top_logprobs": 3}),
        ("top_logprobs", {"logprobs": True, "top_logprobs": 21}),
        ("response_format.type", {"response_format": {"type": "yaml"}}),
        ("response_format.json_schema.schema", {"response_format": {"type": "json_schema", "json_schema": {}}}),
        (
            "response_format.json_schema.schema",
            {"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}},
        ),
        ("response_format", {"response_format": {"type": "json_object"}, "tools": TOOLS}),
        ("ignore_eos", {"response_format": {"type": "json_object"}, "ignore_eos": True}),
        ("tool_choice", {"tool_choice": "required"}),
        ("tool_choice", {"tool_choice": "sometimes", "tools": TOOLS}),
        ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "g"}}, "tools": TOOLS}),
        ("tools[0].function.name", {"tool_choice": "required", "tools": [{}]}),
        ("functions", {"functions": TOOLS}),
        ("guided_json", {"guided_json": {}}),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("speculation.method", {"speculation": {"method": "magic"}}),
        ("speculation.draft", {"speculation": {"draft": "x"}}),
        ("speculation.max_tokens", {"speculation": {"max_tokens": -1}}),
        ("temperature", {"temperature": -1}),
        ("temperature", {"temperature": "hot"}),
        ("temperature", {"temperature": True}),
        ("top_p", {"top_p": 1.5}),
        ("seed", {"seed": 1.5}),
        ("max_tokens", {"max_tokens": 0}),
        ("max_completion_tokens", {"max_completion_tokens": -3}),
        ("stop", {"stop": ""}),
        ("stop", {"stop": ["a", 3]}),
        ("stop", {"stop": ["a"] * 17}),
        ("stream", {"stream": "yes"}),
        ("stream_options", {"stream_options": 3}),
        ("stream_options.include_usage", {"stream_options": {"include_usage": 1}}),
        ("logit_bias", {"logit_bias": [1]}),
        ("logit_bias.hello", {"logit_bias": {"hello": 1}}),
        ("logit_bias.5", {"logit_bias": {"5": 1000}}),
        ("freshlane.speculation", {"freshlane": {"speculation": "no"}}),
        ("model", {"model": 3}),
        ("tools", {"tools": "all"}),
        ("messages", {"messages": []}),
        ("messages", {"messages": None}),
        ("messages", {"messages": "hello"}),
        ("messages[0]", {"messages": ["hello"]}),
        ("messages[0].role", {"messages": [{"content": "x"}]}),
        ("messages[1].content", {"messages": [*HELLO, {"role": "user"}]}),
        ("messages[0].content", {"messages": [{"role": "user", "content": 3}]}),
        ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        ("messages[0].content[0].text", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
    ],
)
def test_what_is_wrong_in_a_chat_is_named(field, fields):
    with pytest.raises(FieldError) as raised:
        chat(**fields)
    assert raised.value.field == field
    assert str(raised.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("logprobs", {"logprobs": 6}),
        ("logprobs", {"logprobs": True}),
        ("response_format", {"response_format": {"type": "json_object"}}),
        ("echo", {"echo": True}),
        ("suffix", {"suffix": "x"}),
        ("best_of", {"best_of": 3}),
        ("prompt", {"prompt": None}),
        ("prompt", {"prompt": ["a", "b"]}),
        ("prompt", {"prompt": [True]}),
        ("prompt", {"prompt": {"a": 1}}),
        ("max_tokens", {"max_tokens": 1.5}),
    ],
)
def test_what_is_wrong_in_a_completion_is_named(field, fields):
    with pytest.raises(FieldError) as raised:
        completion(**fields)
    assert raised.value.field == field


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"3", b"\xff", b'{"seed": NaN}', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(body):
    with pytest.raises(RequestError):
        parse_chat(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = ["messages", "prompt", "stop", "logit_bias", "temperature", "seed", "tools", "stream_options", "n", "freshlane"]
NAMES += ["tool_choice", "response_format", "speculation", "logprobs", "top_logprobs", "modalities"]


@given(st.dictionaries(st.sampled_from(NAMES), JSON))
def test_any_object_is_read_or_refused(fields):
    body = json.dumps(fields).encode()
    for parse in (parse_chat, parse_completion):
        with contextlib.suppress(RequestError):
            parse(body)


USAGE = Usage(
    prompt_tokens=10, cached_tokens=4, completion_tokens=8, drafted=7, accepted=5, cycles=2, prefill_s=0.5, decode_s=2.0
)


def test_usage_has_openais_shape():
    assert usage_object(USAGE) == {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"accepted_prediction_tokens": 5, "rejected_prediction_tokens": 2},
    }


def test_speculation_and_times_stand_beside_it():
    assert speculation_object(USAGE) == {
        "prefill_ms": 500.0,
        "decode_ms": 2000.0,
        "decode_tok_s": 4.0,
        "cycles": 2,
        "drafted": 7,
        "accepted": 5,
    }
    assert speculation_object(Usage())["decode_tok_s"] is None


def test_tool_calls_are_numbered_over_the_whole_answer():
    answer, calls = Answer("chat", "c", 1, "m"), (ToolCall("f", "{}"), ToolCall("g", '{"x": 1}'))
    streamed = answer.calls_chunk(1, calls, 3)["choices"][0]["delta"]["tool_calls"]
    assert [call["index"] for call in streamed] == [3, 4]
    message = answer.choice(1, "", "tool_calls", calls)["message"]
    assert message["content"] is None
    assert message["tool_calls"][1]["function"] == {"name": "g", "arguments": '{"x": 1}'}
    assert len({call["id"] for call in message["tool_calls"]}) == 2


def test_chunks_and_answers_carry_their_kinds():
    talk, text = Answer("chat", "c", 1, "m"), Answer("text", "t", 1, "m")
    assert talk.first_chunk(0)["choices"][0]["delta"]["role"] == "assistant"
    assert text.first_chunk(0) is None
    assert talk.chunk(0, "x", None)["choices"][0]["delta"] == {"content": "x"}
    assert talk.chunk(0, "", "stop")["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert text.chunk(2, "x", "length")["choices"][0]["text"] == "x"
    assert talk.usage_chunk(USAGE)["choices"] == []
    assert talk.choice(0, "x", "stop")["message"]["content"] == "x"
    assert text.whole([text.choice(0, "x", "stop")], USAGE)["object"] == "text_completion"
