"""The text of a new lanes.yaml. No I/O; what it gives passes `freshlane check`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from supervisor.cli.finding.plan import MOST_LANES, LaneIdea

HEAD = """\
# The lanes of this machine, written by `freshlane init`. A lane is a name for clients and one worker behind it, which
# freshlane starts, measures, and replaces once it has grown slow.
#
#   freshlane check      every error of this file at once, or what would run
#   freshlane run        the daemon; the page is at http://{listen}/
#   freshlane doctor     what on this machine could be in the way
#
# All keys with their defaults: docs/config.md, or `freshlane schema` for editors.
listen: {listen}
# Beyond this machine only with keys:
# listen: 0.0.0.0:7411
# api_keys: ["${{env:FRESHLANE_KEY}}"]

lanes:
"""
TAIL = """
# What a lane may have besides, with the defaults:
#   aliases: []                        # further names for clients
#   start: eager                       # on_demand: at the first request; then idle_unload: 30m frees the memory
#   recycle: {mode: auto}              # advise: only say so;  window: "01:00-06:00 Europe/Berlin": only then
#   max_inflight: 8                    # more wait in a queue
#   drain_timeout: 10m                 # how long answers in flight get to finish
"""
BUILT_IN = LaneIdea(
    "smollm2",
    (("model", "smollm2-135m"),),
    "a small real model on freshlane's own engine, to see it run; the first start fetches it (about 100 MB)",
)
PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9./_:-]*[A-Za-z0-9]")
"""What YAML takes for nothing but text (a word such as `yes` is quoted by its shape below)."""
WORDS_OF_YAML = frozenset({"yes", "no", "on", "off", "true", "false", "null", "y", "n"})


def lanes_text(found: Sequence[LaneIdea], listen: str = "127.0.0.1:7411") -> str:
    """The file: the first lanes live, the others as comments."""
    live = list(found[:MOST_LANES]) or [BUILT_IN]
    text = HEAD.format(listen=listen)
    text += "\n".join(_lane(idea, is_first=at == 0) for at, idea in enumerate(live))
    rest = [*found[MOST_LANES:], *([BUILT_IN] if found else [])]
    if rest:
        text += "\n  # Also possible here; take away the # in front:\n"
        text += "\n".join(_commented(_lane(idea, is_first=False)) for idea in rest)
    return text + TAIL


def _lane(idea: LaneIdea, *, is_first: bool) -> str:
    """The first lane is there at once; another loads its model when somebody asks for it."""
    keys = list(idea.keys)
    if not is_first and not any(key == "attach" for key, _ in keys):
        keys += [("start", "on_demand"), ("idle_unload", "30m")]
    lines = [f"  # {_one_line(idea.why)}", f"  {scalar(idea.name)}:"]
    lines += [f"    {key}: {scalar(value)}" for key, value in keys]
    return "".join(line + "\n" for line in lines)


def _commented(text: str) -> str:
    return "".join(f"  # {line[2:].removeprefix('# ')}\n" for line in text.splitlines())


def _one_line(text: str) -> str:
    """What a comment may hold."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def scalar(text: str) -> str:
    """``text`` as YAML that means just this text."""
    is_plain = PLAIN.fullmatch(text) and text.lower() not in WORDS_OF_YAML and not text.endswith(":")
    return text if is_plain or re.fullmatch(r"[0-9]+m", text) else json.dumps(text)
