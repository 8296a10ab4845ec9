"""The verbs that need no daemon."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, start_command
from tests.cli.test_target import write_config

SLOW_TO_IMPORT = ("aiohttp", "mlx", "uvloop", "yaml", "supervisor.daemon", "supervisor.settings")


async def test_version_is_quick_because_it_imports_nothing_big(
    environment: dict[str, str], tmp_path: Path, freshlane: Run
) -> None:
    program = (
        "import sys; sys.argv = ['freshlane', 'version']\n"
        "from supervisor.cli.app import main\n"
        "try: main()\n"
        f"except SystemExit: print([name for name in {SLOW_TO_IMPORT!r} if name in sys.modules])"
    )
    ended = await freshlane("version")
    assert ended.code == 0
    assert ended.out.startswith("freshlane ")
    process = await start_command(environment=environment, folder=tmp_path, program=program)
    out, _ = await process.communicate()
    assert out.decode().splitlines()[-1] == "[]"


async def test_check_shows_what_would_run(freshlane: Run, tmp_path: Path) -> None:
    write_config(
        tmp_path, "127.0.0.1:7499", more="  llama:\n    command: [llama-server, --port, '{port}']\n    aliases: [big]\n"
    )
    ended = await freshlane("check")
    assert ended.code == 0, ended
    assert ended.out.startswith("lanes.yaml: 2 lanes, listening on 127.0.0.1:7499, state in ")
    assert "freshlane's own engine" in ended.out
    assert "llama-server --port {port}" in ended.out


async def test_check_warns_of_what_is_not_on_this_machine(freshlane: Run, tmp_path: Path) -> None:
    write_config(tmp_path, "127.0.0.1:7499", more="  own:\n    command: [no-such-program, --port, '{port}']\n")
    ended = await freshlane("check")
    assert ended.code == 0, ended
    assert 'warning: lanes.own.command: program "no-such-program" is not on PATH' in ended.err


async def test_check_lists_every_error_and_exits_with_2(freshlane: Run, tmp_path: Path) -> None:
    write_config(tmp_path, "127.0.0.1:7499", more="    modle: x\n    canary: {every: 5}\n")
    ended = await freshlane("check")
    assert (ended.code, ended.out) == (2, "")
    first, *problems = ended.err.splitlines()
    assert first == "lanes.yaml: 2 errors"
    assert problems[0].startswith("lanes.yaml:6: lanes.smollm2.modle: unknown key")
    assert problems[1].startswith("lanes.yaml:7: lanes.smollm2.canary.every: ")


async def test_check_without_a_file_says_where_it_looked(freshlane: Run) -> None:
    ended = await freshlane("check")
    assert ended.code == 2
    assert "/.config/freshlane/lanes.yaml" in ended.err


async def test_the_schema_is_json(freshlane: Run) -> None:
    document = json.loads((await freshlane("schema")).out)
    assert "lanes" in document["properties"]


async def test_help_names_every_verb(freshlane: Run) -> None:
    ended = await freshlane("--help")
    assert ended.code == 0
    for verb in ("run", "check", "status", "top", "log", "logs", "probe", "recycle", "drain", "baseline", "reload"):
        assert f" {verb} " in ended.out


async def test_completion_completes_verbs_and_lanes(freshlane: Run, tmp_path: Path) -> None:
    script = await freshlane("completion", "bash")
    assert "_FRESHLANE_COMPLETE" in script.out
    asked = {"COMP_WORDS": "freshlane st", "COMP_CWORD": "1", "_FRESHLANE_COMPLETE": "complete_bash"}
    assert (await freshlane(env=asked)).out.split() == ["status", "start", "stop"]
    write_config(tmp_path, "127.0.0.1:7499")
    asked |= {"COMP_WORDS": "freshlane drain sm", "COMP_CWORD": "2"}
    assert (await freshlane(env=asked)).out.split() == ["smollm2"]
