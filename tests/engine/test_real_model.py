"""SmolLM2-135M itself: its conversion, and our decoding against mlx-lm's on real text."""

from __future__ import annotations

import pytest
from tiny_model import assert_same_up_to_ties, reference

from engine import model
from engine.request import NO_SPECULATION, EngineSettings, GenerationRequest, Sampling, Speculation
from engine.scheduler import Scheduler

pytestmark = pytest.mark.model
QUESTIONS = ("What is the capital of France?", "Repeat this exactly: one two three, one two three, one two three.")


@pytest.fixture(scope="module")
def loaded() -> model.LoadedModel:
    return model.load("smollm2-135m", lambda *_: None)


def prompt_of(loaded: model.LoadedModel, question: str) -> list[int]:
    messages = [{"role": "user", "content": question}]
    return list(loaded.info.tokenizer.apply_chat_template(messages, add_generation_prompt=True))


def test_the_converted_tokenizer_keeps_every_character(loaded):
    for text in ("Hello, world!", "naïve café ß 12345", "日本語 🙂", "  def f(x):\n\treturn x\n"):
        assert loaded.info.tokenizer.decode(loaded.info.tokenizer.encode(text)) == text


def test_it_knows_the_capital_of_france(loaded):
    tokens = reference(loaded.model, prompt_of(loaded, QUESTIONS[0]), 8)
    assert "Paris" in loaded.info.tokenizer.decode(tokens)


@pytest.mark.parametrize("speculation", [NO_SPECULATION, Speculation()], ids=["plain", "auto"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_its_answers_are_those_of_mlx_lm(loaded, question, speculation):
    scheduler = Scheduler(loaded, EngineSettings("smollm2-135m"))
    for k, seconds in ((0, 0.1), (1, 0.12), (3, 0.12), (7, 0.12)):  # as on a machine where drafts pay
        scheduler.controller.costs.observe(k, 64, seconds)
    prompt = prompt_of(loaded, question)
    request = GenerationRequest("r", tuple(prompt), 12, Sampling(0), loaded.info.eos_ids, speculation)
    got = [token for batch in scheduler.decode(request) for token in batch.tokens]
    expected = reference(loaded.model, prompt, len(got))
    assert_same_up_to_ties(loaded.model, prompt, expected, got)
