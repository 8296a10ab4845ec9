"""Answers that follow a grammar: the same ones with drafts, in company, and after a move from one way to the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlx_lm.tokenizer_utils import load
from test_batch import request, together, tokens_of
from tiny_model import (
    EOS,
    JSON_WORDS,
    VOCABULARY,
    WIDTHS,
    OracleDrafter,
    ScriptedPolicy,
    decoded,
    random_prompt,
    tiny_model,
    write_tiny_model,
)

from engine.answer_form import place_of
from engine.decode_thread import DecodeThread
from engine.drafters import NoDrafter
from engine.errors import DecodeError, FieldError
from engine.grammar import Grammar, Matcher, schema_grammar, schema_problem
from engine.request import EngineSettings, Sampling
from engine.vocabulary import Vocabulary

THINK_END = JSON_WORDS.index("</think>")
SCHEMA = {
    "type": "object",
    "properties": {
        "set": {"type": "array", "items": {"enum": [1, 22, "é", None, True]}, "minItems": 2, "maxItems": 9},
        "name": {"type": "string", "maxLength": 12},
        "e": {"type": "boolean"},
    },
    "required": ["set", "name", "e"],
    "additionalProperties": False,
}
STOPS = frozenset({EOS})
COUNT = 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny", is_json=True)


@pytest.fixture(scope="module")
def vocabulary(folder) -> Vocabulary:
    return Vocabulary(load(folder), VOCABULARY, STOPS)


@pytest.fixture(scope="module")
def grammar(vocabulary) -> Grammar:
    return Grammar(schema_grammar(SCHEMA), vocabulary, (), "response_format")


@pytest.fixture(scope="module")
def model():
    return tiny_model()


def check(vocabulary: Vocabulary, tokens: list[int]) -> dict:
    assert tokens[-1] == EOS
    value = json.loads(b"".join(vocabulary.bytes_of(token) for token in tokens[:-1]))
    assert set(value) == {"set", "name", "e"}
    assert all(item in (1, 22, "é", None, True) for item in value["set"])
    assert len(value["name"]) <= 12
    return value


def plain(model, prompt, sampling, grammar) -> list[int]:
    return decoded(
        model, prompt, COUNT, NoDrafter(), ScriptedPolicy([0]), sampling=sampling, stops=STOPS, grammar=grammar
    )


@pytest.mark.parametrize("sampling", [Sampling(0), Sampling(1.0, seed=4), Sampling(0, repetition_penalty=1.3)])
@pytest.mark.parametrize("seed", range(3))
def test_drafts_change_nothing_of_an_answer_that_follows_a_schema(model, vocabulary, grammar, sampling, seed):
    prompt = random_prompt(seed)
    expected = plain(model, prompt, sampling, grammar)
    check(vocabulary, expected)
    for error, widths in ((0.0, (15,)), (0.4, WIDTHS), (0.4, (3,)), (1.0, (2,))):
        drafter, policy = OracleDrafter(prompt + expected, error, seed), ScriptedPolicy(widths, seed)
        got = decoded(model, prompt, COUNT, drafter, policy, sampling=sampling, stops=STOPS, grammar=grammar)
        assert got == expected


def test_a_forbidden_draft_is_cut_before_it_is_verified(model, grammar):
    prompt = random_prompt(1)
    expected = plain(model, prompt, Sampling(0), grammar)
    policy = ScriptedPolicy([7])
    decoded(model, prompt, COUNT, OracleDrafter(prompt + expected, 1.0), policy, stops=STOPS, grammar=grammar)
    matcher = Matcher(grammar, prompt)
    drafted = sum(width for width, _ in policy.cycles)
    assert drafted < 7 * len(expected) / 4, "most wrong tokens are forbidden ones"
    first = (JSON_WORDS.index("{"), JSON_WORDS.index('{"'))
    assert matcher.permitted([first[0], JSON_WORDS.index("true")]) == 1
    assert matcher.permitted([JSON_WORDS.index("}")]) == 0


def test_after_reasoning_alone_does_the_grammar_begin(model, vocabulary):
    grammar = Grammar(schema_grammar(SCHEMA), vocabulary, (THINK_END,), "response_format")
    sampling = Sampling(1.0, seed=3, logit_bias={THINK_END: 1.0, EOS: -100.0})
    prompt = random_prompt(2)
    expected = plain(model, prompt, sampling, grammar)
    at = expected.index(THINK_END)
    assert at > 3
    check(vocabulary, expected[at + 1 :])
    drafter, policy = OracleDrafter(prompt + expected, 0.2), ScriptedPolicy(WIDTHS)
    assert decoded(model, prompt, COUNT, drafter, policy, sampling=sampling, stops=STOPS, grammar=grammar) == expected


async def test_in_company_and_on_the_way_there_an_answer_is_the_same(folder, vocabulary, grammar, model):
    thread = DecodeThread(EngineSettings(str(folder)))
    thread.start()
    await thread.ready()
    try:
        sampling, prompts = Sampling(1.0, seed=9), [random_prompt(seed) for seed in range(4)]
        expected = [plain(model, prompt, sampling, grammar) for prompt in prompts]
        asked = [request(prompt, COUNT, sampling, stop_tokens=STOPS, grammar=grammar) for prompt in prompts]
        free = request(random_prompt(5), 40)
        *answers, other = await together(thread, [*asked, free])
        assert answers == expected
        assert other == (await together(thread, [free]))[0]
        first = thread.submit(asked[0])
        begun = await anext(first)
        while len(begun.tokens) == 0:
            begun = await anext(first)
        beside = thread.submit(asked[1])
        assert [*begun.tokens, *await tokens_of(first)] == expected[0]
        assert await tokens_of(beside) == expected[1]
    finally:
        thread.stop()


@pytest.mark.parametrize("company", [0, 2])
async def test_a_grammar_that_runs_into_a_blind_alley_ends_its_answer_and_no_other(folder, vocabulary, company):
    alley = Grammar('%llguidance {}\nstart: "1" "2" "x"', vocabulary, (), "response_format")
    thread = DecodeThread(EngineSettings(str(folder)))
    thread.start()
    await thread.ready()
    try:
        others = [thread.submit(request(random_prompt(seed), 60)) for seed in range(company)]
        blind = thread.submit(request(random_prompt(7), COUNT, stop_tokens=STOPS, grammar=alley))
        with pytest.raises(DecodeError, match="simpler schema"):
            await tokens_of(blind)
        assert [len(await tokens_of(other)) for other in others] == [60] * company
    finally:
        thread.stop()


def test_what_the_vocabulary_cannot_write_is_refused(tmp_path):
    letters = Vocabulary(load(write_tiny_model(tmp_path / "letters")), VOCABULARY, STOPS)
    with pytest.raises(FieldError, match=r"response_format: .*cannot write"):
        Grammar(schema_grammar({"type": "object"}), letters, (), "response_format")


@pytest.mark.parametrize(
    ("schema", "place", "problem"),
    [
        ({"type": "objekt"}, "", "Invalid type: objekt"),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, ".properties.a", "Invalid type: strin"),
        ({"anyOf": [{"type": "null"}, {"items": {"not": {}}}]}, ".anyOf[1].items", "not"),
        ({"$defs": {"x": {"type": "string", "pattern": "("}}, "$ref": "#/$defs/x"}, ".$defs.x", "regex"),
        ({"properties": {"a": {"$ref": "#/nope"}}}, ".properties.a", "nope"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "", "minItems"),
        ({"type": "object"}, None, ""),
    ],
)
def test_a_bad_schema_is_told_with_its_place(schema, place, problem):
    found = schema_problem(schema)
    assert problem in found
    assert bool(found) == bool(problem)
    if found:
        assert place_of(schema, schema_problem) == place
