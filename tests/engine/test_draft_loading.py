"""Which drafters a model gets, and how a draft that does not do is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_model import write_tiny_model

from engine import model
from engine.drafters.load import drafters_for
from engine.errors import ModelError
from engine.request import EngineSettings, GenerationRequest, Sampling
from engine.scheduler import Scheduler


def silent(doing: str, fraction: float) -> None: ...


@pytest.fixture
def target(tmp_path: Path) -> model.LoadedModel:
    return model.load(str(write_tiny_model(tmp_path / "target")), silent)


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "draft", seed=1)


@pytest.mark.parametrize(("method", "name"), [("draft", "draft"), ("auto", "ngram+draft"), ("ngram", "ngram")])
def test_the_settings_say_what_drafts(target, draft, method, name):
    assert drafters_for(target, EngineSettings("t", method, draft=str(draft)), silent).method == name


def test_a_draft_model_of_another_tokenizer_is_refused_with_the_difference(target, draft):
    file = draft / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    words = tokenizer["model"]["vocab"]
    words["0"], words["1"] = words["1"], words["0"]
    file.write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match=r"another tokenizer than .*: 2 entries differ, first '0'"):
        drafters_for(target, EngineSettings("t", "draft", draft=str(draft)), silent)


@pytest.mark.parametrize(
    ("method", "message"), [("draft", "needs a draft: give --draft"), ("dflash", "needs a draft"), ("mtp", "MTP")]
)
def test_a_method_that_lacks_its_draft_says_what_to_do(target, method, message):
    with pytest.raises(ModelError, match=message):
        drafters_for(target, EngineSettings("t", method), silent)


def test_an_ordinary_model_is_no_dflash_checkpoint(target, draft):
    with pytest.raises(ModelError, match="is no DFlash checkpoint"):
        drafters_for(target, EngineSettings("t", "dflash", draft=str(draft)), silent)


def test_a_scheduler_with_a_draft_gives_what_one_without_gives(target, draft):
    request = GenerationRequest("r", (1, 2, 3, 4, 5), 24, Sampling(temperature=0))
    outputs = []
    for settings in (EngineSettings("t", "off"), EngineSettings("t", "draft", draft=str(draft))):
        scheduler = Scheduler(target, settings)
        while scheduler.work_idly():
            pass
        outputs.append([token for batch in scheduler.decode(request) for token in batch.tokens])
    assert outputs[0] == outputs[1]
    assert scheduler.stats()["speculation"]["draft_ms"].keys() <= {"1", "3", "7", "15"}
