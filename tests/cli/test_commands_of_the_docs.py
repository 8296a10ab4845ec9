"""The commands that stand in the docs, run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY, Run
from tests.cli.stand_in import StandIn
from tests.conftest import FakeWorkerFactory
from tests.docs.pages import PAGES, blocks

ELSEWHERE = {"run", "demo", "init", "service"}
"""They stay, or change the machine; tests of their own run them."""
FOLLOWING = {"-f", "--follow"}
SERVER = re.compile(r"http://127\.0\.0\.1:8000\S*")


def commands() -> list[str]:
    """Each `freshlane ...` of a shell block that ends by itself, once."""
    texts = [text for page in PAGES for block in blocks(page, "sh") for text in block.splitlines()]
    lines = (text.split("  #")[0].strip() for text in texts)
    named = (line.removeprefix("uvx --from . ").removeprefix(".venv/bin/") for line in lines)
    asked = dict.fromkeys(line for line in named if line.startswith("freshlane "))
    return [line for line in asked if line.split()[1] not in ELSEWHERE and not FOLLOWING & set(line.split())]


@pytest.mark.parametrize("line", commands())
async def test_it_runs(
    line: str, freshlane: Run, stand_in: StandIn, fake_worker: FakeWorkerFactory, tmp_path: Path
) -> None:
    shutil.copy(REPOSITORY / "lanes.yaml", tmp_path)
    if SERVER.search(line):
        worker = await fake_worker(tok_s=400, model="my-model")
        line = SERVER.sub(worker.url, line)
    _, *words = shlex.split(line.replace("LANE", "qwen"))
    ended = await freshlane(*words, url=stand_in.url)
    # The doctor may find something on this machine; nothing may be found wrong with the command.
    assert ended.code in ((0, 1) if words[0] == "doctor" else (0,)), ended.err
    assert "Traceback" not in ended.err
