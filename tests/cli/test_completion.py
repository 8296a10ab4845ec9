"""What shells complete: verbs, and the lanes of the lanes.yaml at hand."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_target import write_config

MORE_LANES = "  coder:\n    command: [my-server, --port, '{port}']\n"
ASKED = {
    "zsh": {"_FRESHLANE_COMPLETE": "complete_zsh"},
    "fish": {"_FRESHLANE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}
"""What their scripts set when a person presses TAB."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_each_shell_gets_its_script(shell: str, freshlane: Run) -> None:
    ended = await freshlane("completion", shell)
    assert ended.code == 0
    assert f"_FRESHLANE_COMPLETE=complete_{shell}" in ended.out


@pytest.mark.parametrize("shell", ASKED)
@pytest.mark.parametrize(
    ("typed", "wanted", "others"),
    [("freshlane rec", "recycle", "status"), ("freshlane recycle co", "coder", "recycle")],
    ids=["verbs", "lanes"],
)
async def test_zsh_and_fish_complete(
    shell: str, typed: str, wanted: str, others: str, freshlane: Run, tmp_path: Path
) -> None:
    write_config(tmp_path, "127.0.0.1:7499", more=MORE_LANES)
    ended = await freshlane(env={**ASKED[shell], "_TYPER_COMPLETE_ARGS": typed})
    assert wanted in ended.out
    assert others not in ended.out


async def test_a_real_bash_completes_verbs_and_lanes(environment: dict[str, str], tmp_path: Path) -> None:
    write_config(tmp_path, "127.0.0.1:7499", more=MORE_LANES)
    program = """
        eval "$(freshlane completion bash)"
        COMP_WORDS=(freshlane rec); COMP_CWORD=1; _freshlane_completion freshlane; echo "${COMPREPLY[*]}"
        COMP_WORDS=(freshlane recycle co); COMP_CWORD=2; _freshlane_completion freshlane; echo "${COMPREPLY[*]}"
    """
    bash = shutil.which("bash")
    assert bash
    process = await asyncio.create_subprocess_exec(
        *(bash, "--norc", "-c", program),
        env={**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert out.decode().splitlines() == ["recycle", "coder"]
