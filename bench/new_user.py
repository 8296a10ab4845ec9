"""Measure what a newcomer waits for: the README's "See it work", word for word, from a fresh clone.

    python bench/new_user.py [--json FILE]

A clone of this repository, an empty cache and an empty state folder; the packages come from the registry. `make run`
goes in one shell; once the daemon listens, the commands after it go in another, one after the other.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.proxy_report import machine

REPOSITORY = Path(__file__).parents[1]
SECTION = "## See it work"
BARS_S = {"first_answer_s": 240.0, "first_recycle_s": 300.0}
"""From the clone on."""
LONGEST_S = 600.0
LONGEST_TAIL = 10_000
LISTENS = "http://127.0.0.1:7411/healthz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = bench(Path(folder))
    text = json.dumps(result, indent=2)
    if options.json:
        options.json.write_text(text + "\n")
    print(text)


def commands(readme: str) -> list[str]:
    """The commands of the section, one by one, without their comments."""
    section = readme.split(SECTION + "\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    return [line.split("  #")[0].strip() for line in lines]


def bench(folder: Path) -> dict[str, Any]:
    began = time.monotonic()
    clone = folder / "freshlane"
    subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    first, *others = [line for line in commands((clone / "README.md").read_text()) if not line.endswith(" demo")]
    log = folder / "run.log"
    with log.open("wb") as out:
        run = subprocess.Popen(first.split(), cwd=clone, env=env, start_new_session=True, stdout=out, stderr=out)
    try:
        until_it_listens(began, run)
        steps = {"listening": round(time.monotonic() - began, 1)}
        for line in others:
            said = subprocess.run(
                ["bash", "-c", line], cwd=clone, env=env, check=True, capture_output=True, text=True, timeout=LONGEST_S
            ).stdout
            print(f"$ {line}\n{said}", file=sys.stderr)
            steps[line] = round(time.monotonic() - began, 1)
    except (SystemExit, subprocess.SubprocessError):
        print(log.read_text()[-LONGEST_TAIL:], file=sys.stderr)
        raise
    finally:
        os.killpg(run.pid, signal.SIGTERM)
        run.wait(60)
    reached = {
        "first_answer_s": next(at for line, at in steps.items() if line.startswith("curl ")),
        "first_recycle_s": next(at for line, at in steps.items() if " recycle " in line),
    }
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_average": os.getloadavg(),
        **{name: {"value": at, "bar": BARS_S[name], "met": at <= BARS_S[name]} for name, at in reached.items()},
        "seconds_after_each_step": steps,
    }


def until_it_listens(began: float, run: subprocess.Popen[bytes]) -> None:
    while not listens():
        if run.poll() is not None or time.monotonic() - began > LONGEST_S:
            raise SystemExit("`make run` ended, or took too long")
        time.sleep(0.2)  # noqa: TID251 - a stopwatch, not a test


def listens() -> bool:
    try:
        with urllib.request.urlopen(LISTENS, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    main()
