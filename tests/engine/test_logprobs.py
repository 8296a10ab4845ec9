"""Log-probabilities: the model's own, whichever way a token was decoded, and in OpenAI's shapes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import mlx.core as mx
import pytest
from test_batch import request
from tiny_model import (
    VOCABULARY,
    WIDTHS,
    OracleDrafter,
    ScriptedPolicy,
    decoded,
    random_prompt,
    reference,
    tiny_model,
    write_tiny_model,
)

from engine.decode_thread import DecodeThread
from engine.generation import Generation
from engine.logprobs import Scores
from engine.request import EngineSettings, Sampling, TokenScore
from engine.scores_wire import CompletionLogprobs, chat_logprobs

COUNT = 40
CLOSE = {"abs": 1e-3}
SPELLED = {1: b"a", 2: "é".encode()[:1], 3: "é".encode()[1:], 4: b"bc", 5: b""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny")


def check(prompt: list[int], scores: list[TokenScore], top: int) -> None:
    """Against one pass of the model over everything."""
    tokens = [score.token for score in scores]
    logits = tiny_model()(mx.array([prompt + tokens]))[0, len(prompt) - 1 : -1]
    expected = (logits - mx.logsumexp(logits, axis=-1, keepdims=True)).tolist()
    for row, score in zip(expected, scores, strict=True):
        assert score.logprob == pytest.approx(row[score.token], **CLOSE)
        assert [value for _, value in score.likeliest] == pytest.approx(sorted(row, reverse=True)[:top], **CLOSE)
        assert all(value == pytest.approx(row[token], **CLOSE) for token, value in score.likeliest)


@pytest.mark.parametrize(
    "sampling",
    [Sampling(0), Sampling(0.8, seed=3, top_k=9), Sampling(0, repetition_penalty=1.4, logit_bias={3: 4.0})],
    ids=["greedy", "sampled", "penalties"],
)
@pytest.mark.parametrize("widths", [(0,), (3,), WIDTHS], ids=["plain", "three", "random"])
def test_they_are_those_of_the_models_own_logits_with_drafts_and_without(sampling, widths):
    model, prompt = tiny_model(), random_prompt(2)
    scores = Scores(5)
    drafter = OracleDrafter(prompt + reference(model, prompt, COUNT), 0.3)
    tokens = decoded(model, prompt, COUNT, drafter, ScriptedPolicy(widths), sampling=sampling, scores=scores)
    taken = list(scores.take())
    assert [score.token for score in taken] == tokens
    check(prompt, taken, 5)


async def scores_of(generation: Generation) -> list[TokenScore]:
    batches = [batch async for batch in generation]
    assert all(len(batch.scores) == len(batch.tokens) for batch in batches)
    return [score for batch in batches for score in batch.scores]


async def test_in_company_they_are_the_same(folder):
    thread = DecodeThread(EngineSettings(str(folder)))
    thread.start()
    await thread.ready()
    try:
        prompts = [random_prompt(seed) for seed in range(4)]
        samplings = [Sampling(0), Sampling(0.8, seed=3), Sampling(0, repetition_penalty=1.4), Sampling(0)]
        asked = [
            request(prompt, COUNT, sampling, top_logprobs=top)
            for top, (prompt, sampling) in enumerate(zip(prompts, samplings, strict=True))
        ]
        answers = await asyncio.gather(*(scores_of(thread.submit(one)) for one in asked))
        assert thread.stats()["batch"]["tokens"] > COUNT
        for top, (prompt, scores) in enumerate(zip(prompts, answers, strict=True)):
            assert len(scores) == COUNT
            check(prompt, scores, top)
    finally:
        thread.stop()


def test_more_alternatives_than_there_are_tokens_are_all_of_them():
    scores = Scores(VOCABULARY + 5)
    decoded(tiny_model(), random_prompt(1), 1, OracleDrafter([], 0), ScriptedPolicy([0]), scores=scores)
    [score] = scores.take()
    assert len(score.likeliest) == VOCABULARY


def test_half_a_character_is_shown_by_its_bytes():
    scores = [TokenScore(1, -0.1), TokenScore(2, -0.2, ((2, -0.2), (3, -3.0))), TokenScore(3, float("-inf"))]
    content = chat_logprobs(scores, SPELLED.__getitem__)["content"]
    assert [entry["token"] for entry in content] == ["a", "bytes:\\xc3", "bytes:\\xa9"]
    assert b"".join(bytes(entry["bytes"]) for entry in content).decode() == "aé"
    assert [entry["logprob"] for entry in content[1]["top_logprobs"]] == [-0.2, -3.0]
    assert content[2]["logprob"] == -9999.0


def test_offsets_of_a_completion_count_its_characters_over_all_its_pieces():
    shaped = CompletionLogprobs(SPELLED.__getitem__)
    first = shaped.of([TokenScore(1, -0.1, ((4, -0.05),)), TokenScore(2, -0.2)])
    second = shaped.of([TokenScore(3, -0.3), TokenScore(4, -0.4), TokenScore(5, -0.5), TokenScore(1, -0.6)])
    broken = shaped.of([TokenScore(2, -0.1), TokenScore(1, -0.1)])
    assert broken["text_offset"] == [5, 6], "half a character is shown as one"
    assert first["text_offset"] + second["text_offset"] == [0, 1, 1, 2, 4, 4]
    assert first["top_logprobs"][0] == {"bc": -0.05, "a": -0.1}
    assert second["token_logprobs"] == [-0.3, -0.4, -0.5, -0.6]
