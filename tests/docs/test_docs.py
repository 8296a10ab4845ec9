"""What the pages say is so: commands, keys, codes and links are looked up in the program and the repository."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
import typer

from supervisor.cli.app import app
from supervisor.cli.exits import Exit
from supervisor.config import load
from tests.docs.pages import PAGES, REPOSITORY, anchors, blocks, code, links, name_of

each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
DOCS = REPOSITORY / "docs"
GROUP = typer.main.get_command(app)
BLOCKS_OF_KEYS = "baseline|canary|degraded|fleet|hang|history|hold|log|memory|on_recycle|prefix|recycle|speculation"
KEY = re.compile(rf"(?:{BLOCKS_OF_KEYS})(?:\.[a-z_]+)+")
FILES = {"prefix.py", "recycle.jsonl", "history.sqlite"}


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_parts_are_up_to_date() -> None:
    stale = [name_of(page) for page, text in generator().pages().items() if page.read_text() != text]
    assert not stale, "run `make docs`"


def commands(page: Path) -> list[list[str]]:
    """Each `freshlane VERB ...` of the page, as words."""
    found = []
    for text in code(page):
        program, _, rest = text.removeprefix("uvx --from . ").partition(" ")
        if program.removeprefix(".venv/bin/") == "freshlane" and rest:
            found.append(shlex.split(rest))
    return found


@each_page
def test_every_command_exists_with_its_options(page: Path) -> None:
    for verb, *rest in commands(page):
        context = typer.Context(GROUP)
        command = GROUP.get_command(context, verb)  # type: ignore[attr-defined]
        assert command, f"freshlane {verb}"
        inner = getattr(command, "commands", {})
        if rest and inner and not rest[0].startswith("-"):
            assert rest[0] in inner, f"freshlane {verb} {rest[0]}"
            command = inner[rest[0]]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
        assert {word for word in rest if re.fullmatch(r"--?[a-z-]+", word)} <= known, f"freshlane {verb} {rest}"


@each_page
def test_links_within_the_repository_resolve(page: Path) -> None:
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target:
            assert target.startswith("https://"), link
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.is_file(), link
        assert not anchor or anchor in anchors(file), link


@each_page
def test_every_lanes_yaml_is_one(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "yaml"):
        file = tmp_path / "lanes.yaml"
        file.write_text(text)
        assert not load(file).warnings


def test_the_repositorys_own_lanes_yaml_is_one() -> None:
    assert not load(REPOSITORY / "lanes.yaml").warnings


@each_page
def test_every_key_of_lanes_yaml_exists(page: Path) -> None:
    keys = re.findall(r"^\| `([a-z_.]+)` \|", (DOCS / "config.md").read_text(), re.MULTILINE)
    named = {text for text in code(page) if KEY.fullmatch(text)} - FILES
    assert {name for name in named if not any(key == name or key.startswith(f"{name}.") for key in keys)} == set()


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = re.findall(r"^\| (\d+) \| ", (DOCS / "operations.md").read_text(), re.MULTILINE)
    assert {int(number) for number in told} == {int(number) for number in Exit}


def test_every_error_code_stands_in_the_program() -> None:
    source = "".join(path.read_text() for path in (REPOSITORY / "supervisor").rglob("*.py"))
    rows = re.findall(r"^\| \d{3} \| (.+?) \|", (DOCS / "http.md").read_text(), re.MULTILINE)
    told = [word for row in rows for word in re.findall(r"`(\w+)`", row)]
    assert len(told) > 10
    assert [word for word in told if f'"{word}"' not in source] == []
