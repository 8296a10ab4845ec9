"""Events out of chunks, bodies, and what events mean."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.shell.front.body import UnreadableBodyError, read_body
from supervisor.shell.front.meaning import Meaning, facts_of, tokens_of_answer
from supervisor.shell.front.sse import EventSplitter, data_of

STREAMS = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b": c", b"event", b"\n\n"]), max_size=30)


@given(parts=STREAMS, cuts=st.lists(st.integers(0, 120), max_size=12))
@example(parts=[b"data: x", b"\r\n", b"\r\n"], cuts=[8, 9, 10])
def test_any_chunking_gives_the_same_events_and_bytes(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    whole = EventSplitter()
    expected = whole.feed(stream)
    splitter, events, start = EventSplitter(), [], 0
    for cut in [*sorted(cuts), len(stream)]:
        events += splitter.feed(stream[start:cut])
        start = max(start, cut)
    assert events == expected
    assert b"".join(events) + splitter.rest == stream
    assert splitter.rest == whole.rest


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_an_event_ends_at_an_empty_line_of_any_kind(end: bytes) -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: 1" + end + b"data: 2") == [b"data: 1" + end]
    assert splitter.feed(end) == [b"data: 2" + end]


def test_data_may_have_several_lines_beside_other_fields() -> None:
    assert data_of(b"event: x\ndata: 1\ndata:2\nid: 7\n\n") == b"1\n2"
    assert data_of(b": comment\n\n") is None


def chunk(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("event", "meaning"),
    [
        (b": keep-alive\n\n", Meaning.COMMENT),
        (b"data: [DONE]\n\n", Meaning.TERMINAL),
        (b"data:[DONE]\r\n\r\n", Meaning.TERMINAL),
        (chunk(role="assistant", content=""), Meaning.QUIET),
        (chunk(), Meaning.QUIET),
        (chunk(content="a"), Meaning.TOKENS),
        (chunk(reasoning_content="a"), Meaning.TOKENS),
        (chunk(tool_calls=[{"index": 0}]), Meaning.TOKENS),
        (b'data: {"choices": [{"text": "a"}]}\n\n', Meaning.TOKENS),
        (b'data: {"choices": [], "usage": {"completion_tokens": 3}}\n\n', Meaning.QUIET),
        (b'event: response.created\ndata: {"type": "response.created"}\n\n', Meaning.QUIET),
        (b'data: {"type": "response.output_text.delta", "delta": "a"}\n\n', Meaning.TOKENS),
        (b'data: {"type": "response.failed"}\n\n', Meaning.TERMINAL),
        (b'data: {"type": "message_stop"}\n\n', Meaning.TERMINAL),
        (b'data: {"error": {"message": "x"}}\n\n', Meaning.ERROR),
        (b"data: not json\n\n", Meaning.TOKENS),
    ],
)
def test_what_an_event_means(event: bytes, meaning: Meaning) -> None:
    assert facts_of(event).meaning is meaning


def test_usage_is_read_from_events_and_answers() -> None:
    assert facts_of(b'data: {"choices": [], "usage": {"completion_tokens": 3}}\n\n').generated_tokens == 3
    responded = b'data: {"type": "response.completed", "response": {"usage": {"output_tokens": 4}}}\n\n'
    assert facts_of(responded).generated_tokens == 4
    assert facts_of(b'data: {"choices": [], "usage": null}\n\n').generated_tokens is None
    assert tokens_of_answer(b'{"usage": {"prompt_tokens": 9, "completion_tokens" : 5}}') == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    before=st.dictionaries(st.text(max_size=6), JSON, max_size=3),
    after=st.dictionaries(st.text(max_size=6), JSON, max_size=3),
    name=st.text(max_size=8),
    other=st.text(max_size=8),
    indent=st.sampled_from([None, 1]),
    is_ascii=st.booleans(),
)
def test_only_the_models_value_changes_in_any_json(
    *,
    before: dict[str, object],
    after: dict[str, object],
    name: str,
    other: str,
    indent: int | None,
    is_ascii: bool,
) -> None:
    document = {**{k: v for k, v in before.items() if k != "model"}, "model": name}
    document |= {key: value for key, value in after.items() if key != "model"}
    content = json.dumps(document, indent=indent, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
    body = read_body(content, "application/json")
    assert body.model == name
    renamed = body.naming(other)
    assert json.loads(renamed) == document | {"model": other}
    span = body.spans[0]
    tail = len(content) - span.end
    assert renamed[: span.start] == content[: span.start]
    assert renamed[len(renamed) - tail :] == content[span.end :]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"model"', b'{"model": }', b'{"model": 3}', b'{"a": [1', b'{"a": "x', b"\xff\xfe{"]
)
def test_what_is_no_json_object_is_refused_and_never_guessed(content: bytes) -> None:
    with pytest.raises(UnreadableBodyError):
        read_body(content, "application/json")


def test_nested_models_and_quoted_braces_are_left_alone() -> None:
    content = b'{"x": {"model": "no", "y": "}\\"]"}, "stream": true, "model": "yes"}'
    body = read_body(content, "application/json")
    assert (body.model, body.wants_stream) == ("yes", True)
    assert body.naming("new") == content.replace(b'"yes"', b'"new"')


def test_a_model_named_twice_is_renamed_twice() -> None:
    body = read_body(b'{"model": "a", "model": "b"}', "application/json")
    assert body.model == "b"
    assert body.naming("c") == b'{"model": "c", "model": "c"}'


def test_an_event_nested_beyond_reason_passes_as_one_of_an_unknown_kind() -> None:
    event = b'data: {"choices": ' + b"[" * 50_000 + b"]" * 50_000 + b"}\n\n"
    assert facts_of(event).meaning is Meaning.TOKENS
