"""What was written is read back as it was, or not at all; within its budget; and never while it changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache
from tiny_kinds import WINDOW, tiny_kind
from tiny_model import EOS, VOCABULARY, assert_same_up_to_ties, random_prompt, reference, tiny_model

from engine import prefix_disk
from engine.fingerprint import fingerprint_of
from engine.model import LoadedModel
from engine.prefix_cache import Entry
from engine.prefix_disk import PrefixDisk
from engine.prefixes import Prefixes
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Sampling
from engine.rollback import can_rewind
from engine.scheduler import Scheduler

KINDS = {"llama": tiny_model, "gemma3_text": lambda: tiny_kind("gemma3_text"), "lfm2": lambda: tiny_kind("lfm2")}
SYSTEM = [*random_prompt(1, 3 * WINDOW), EOS]


@pytest.fixture(params=KINDS)
def model(request):
    return KINDS[request.param]()


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr(prefix_disk, "MOST_TOKENS", 20)


def engine(model, folder: Path | None, ram: int = 1, disk: int = 1 << 30) -> Scheduler:
    """One whose memory keeps nothing, unless told otherwise."""
    info = ModelInfo("tiny", None, VOCABULARY, 512, frozenset({EOS}))
    settings = EngineSettings(
        "tiny", "off", prefix_bytes=ram, prefix_disk_bytes=disk, prefix_folder=str(folder) if folder else None
    )
    return Scheduler(LoadedModel(model, info, 0), settings)


def answer(scheduler: Scheduler, prompt: list[int], count: int = 12) -> list[int]:
    request = GenerationRequest("test", tuple(prompt), count, Sampling(temperature=0))
    return [token for batch in scheduler.decode(request) for token in batch.tokens]


def room_for_one(model) -> int:
    """Bytes that one conversation nearly fills."""
    scheduler = engine(model, None, ram=1 << 30)
    answer(scheduler, [*SYSTEM, *random_prompt(10, 25)])
    return scheduler._prefixes.memory.nbytes * 6 // 5


def filled(model, folder: Path, conversations: int = 3) -> list[list[int]]:
    """Conversations that begin alike, in a folder; memory had room for one."""
    scheduler = engine(model, folder, ram=room_for_one(model))
    texts = []
    for seed in range(conversations):
        prompt = [*SYSTEM, *random_prompt(10 + seed, 25)]
        texts.append([*prompt, *answer(scheduler, prompt)])
        while scheduler.work_idly():
            pass
    scheduler._prefixes.close()
    return texts


def check(model, scheduler: Scheduler, turn: list[int]) -> int:
    """Decode a turn, compare it with a fresh one, and say how much of it was cached."""
    got = answer(scheduler, turn)
    assert_same_up_to_ties(model, turn, reference(model, turn, 12), got)
    return scheduler.usage.cached_tokens


def test_what_leaves_memory_is_found_on_disk_by_the_next_process(model, tmp_path):
    texts = filled(model, tmp_path)
    scheduler = engine(model, tmp_path)
    for text in texts:
        assert check(model, scheduler, [*text, 5, 6, 7]) >= len(text) - 1
    assert check(model, scheduler, [*SYSTEM, *random_prompt(99, 30)]) >= len(SYSTEM) - 1
    assert scheduler.tally.snapshot()["restored_tokens"] > 3 * 70


def test_nothing_is_written_while_memory_has_room(model, tmp_path):
    scheduler = engine(model, tmp_path, ram=1 << 30)
    answer(scheduler, SYSTEM)
    while scheduler.work_idly():
        pass
    assert scheduler._prefixes.stats()["disk_bytes"] == 0


@pytest.mark.parametrize("harm", ["cut", "flipped", "emptied", "renamed", "of another text"])
def test_a_file_that_is_no_good_gives_no_token_and_is_deleted(model, tmp_path, harm):
    [text, *_] = filled(model, tmp_path)
    files = sorted(tmp_path.glob("*.safetensors"))
    for file in files:
        content = file.read_bytes()
        if harm == "cut":
            file.write_bytes(content[:-7])
        elif harm == "flipped":
            file.write_bytes(content[:-9] + bytes([content[-9] ^ 64]) + content[-8:])
        elif harm == "emptied":
            file.write_bytes(b"")
        elif harm == "renamed":
            file.rename(file.with_name(f"{'0' * 32}-{file.name.rpartition('-')[2]}"))
        else:
            file.write_bytes(files[-1].read_bytes() if file != files[-1] else content[:-1])
    scheduler = engine(model, tmp_path)
    assert check(model, scheduler, [*text, 5, 6, 7]) == 0
    assert not [file for file in files if file.exists()]


def test_what_another_model_wrote_is_passed_over_and_deleted(tmp_path):
    filled(tiny_model(), tmp_path)
    other = tiny_model(seed=1)
    scheduler = engine(other, tmp_path)
    assert check(other, scheduler, [*SYSTEM, 1, 2]) == 0
    assert not list(tmp_path.glob("*.safetensors"))


def test_the_oldest_go_when_the_disk_budget_is_spent_and_what_they_share_stays(model, tmp_path):
    texts = filled(model, tmp_path)
    size = sum(file.stat().st_size for file in tmp_path.glob("*.safetensors"))
    disk = PrefixDisk(tmp_path, fingerprint_of(model), size - 1)
    disk.open()
    assert disk.nbytes == sum(file.stat().st_size for file in tmp_path.glob("*.safetensors")) < size
    is_rewindable = can_rewind(make_prompt_cache(model))
    assert disk.find(tuple(texts[0]), can_rewind=is_rewindable)[0] < len(texts[0]) - 1
    assert disk.find(tuple(texts[1]), can_rewind=is_rewindable)[0] >= len(texts[1]) - 1


def test_what_two_texts_share_is_written_once(tmp_path):
    model = tiny_model()
    disk = PrefixDisk(tmp_path, "x", 1 << 30)
    disk.open()
    for seed in (1, 2):
        tokens = (*SYSTEM[:40], *random_prompt(seed, 20))
        cache = engine(model, None)._new_cache()
        model(mx.array([tokens]), cache=cache)
        list(disk.write(Entry(tokens, cache)))
    assert disk.written_tokens == 40 + 20 + 20


def test_a_folder_that_another_process_has_is_left_alone_until_it_is_free(tmp_path):
    model = tiny_model()
    first, second = (Prefixes(1, engine(model, None)._new_cache, "x", tmp_path, 1 << 20) for _ in range(2))
    assert (first._disk is None, second._disk is None) == (False, True)
    first.close()
    second.spill()
    assert second._disk is not None


def test_a_folder_that_goes_away_stops_nobody(model, tmp_path):
    scheduler = engine(model, tmp_path / "gone", ram=room_for_one(model))
    shutil.rmtree(tmp_path / "gone")
    text = [*SYSTEM, *answer(scheduler, SYSTEM)]
    while scheduler.work_idly():
        pass
    assert check(model, scheduler, [*text, 1]) >= 0
