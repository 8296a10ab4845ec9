"""The knobs, each a command line flag of the same name; most also change live through the control file."""

# ruff: noqa: RUF009 -- `knob` is `field` with its help

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

CONTROL_EVERY_S = 0.02
Numbers = tuple[float, ...]
Mode = Literal[
    "ok",
    "hang",  # no headers
    "headers_then_nothing",
    "empty_200",
    "500",
    "429",
    "reset",
    "finish_error",  # ends well, but with finish_reason error
    "no_done",  # a clean end without the terminal event
    "cut",  # a reset midway
    "error_event",  # an error midway, then the end
    "stall",  # silence midway
]


def _numbers(text: str) -> Numbers:
    return tuple(float(part) for part in text.split(","))


def _path(text: str) -> Path:
    return Path(text).absolute()


CONVERTERS: dict[Any, Any] = {int: int, float: float, Numbers: _numbers, Path | None: _path}


def knob(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class Knobs:
    """What the worker does. Names are those of the flags, with underscores."""

    port: int = knob(0, "the port of 127.0.0.1 to listen on")
    model: str = knob("fake", "the name it answers to in /v1/models")
    strict_model: bool = knob(False, "404 for any other model")
    second_model: str = knob("", "a further model that it serves")
    second_factor: float = knob(1.0, "a factor on the rate of that one; in ill generations only")
    control: Path | None = knob(None, "a JSON file with knobs, read again whenever it changes")
    seed: int = knob(0, "of noise, outliers and spawn speeds; mixed with FRESHLANE_GENERATION")

    tok_s: float = knob(500.0, "nominal decode rate, tokens a second; of embeddings, tokens read")
    spawn_speeds: Numbers = knob((), "rates of which each process draws one, in place of --tok-s")
    spawn_counter: Path | None = knob(None, "a file that counts spawns; then spawn speeds are taken in turn")
    decay_from: float = knob(0.0, "rate at the start of the decay, in place of --tok-s")
    decay_to: float = knob(0.0, "rate at its end; 0: no decay")
    decay_requests: float = knob(0.0, "requests served by this process until the end of the decay")
    decay_seconds: float = knob(0.0, "seconds of uptime until the end of the decay")
    decay_shape: Literal["linear", "step"] = knob("linear", "step: falls at the end, at once")
    cured_by: str = knob("", "the remedy that undoes the decay")
    stays_cured: bool = knob(False, "the decay does not begin anew after that")
    remedies: Literal["ok", "none", "500", "hang"] = knob("ok", "what /remedies does; none is 404")
    noise: float = knob(0.0, "coefficient of variation of the rate from request to request")
    outliers: float = knob(0.0, "chance that a request runs at half rate")
    host_speed_file: Path | None = knob(None, "a file with a factor on every rate, read again whenever it changes")
    ms_per_1k: float = knob(0.0, "milliseconds a token takes longer for each 1,000 tokens of context")
    prefill_tok_s: float = knob(0.0, "prefill rate, tokens a second; 0: at once")

    chunk_tokens: int = knob(1, "tokens in one event")
    usage: Literal["asked", "always", "never"] = knob("asked", "when a stream tells its usage")
    reasoning_tokens: int = knob(0, "how many first tokens come as reasoning_content")
    reasoning_field: str = knob("reasoning_content", "where a chat's delta has its reasoning")
    default_tokens: int = knob(64, "length of an answer without max_tokens")
    answer_tokens: int = knob(0, "the answer ends by itself after so many tokens; 0: it never does")
    framing: Literal["chunked", "length", "close"] = knob("chunked", "how streams are framed; close is HTTP/1.0")
    early_headers: bool = knob(False, "stream headers and role come before prefill")
    comments_every: float = knob(0.0, "seconds between SSE comments during prefill; implies early headers")
    split_writes: bool = knob(False, "each event goes out in two writes")
    cached_tokens: bool = knob(True, "prompts that begin like earlier ones are prefilled only from there on")
    prefix: Literal["ok", "none", "500", "hang"] = knob("ok", "what /prefix/save and /prefix/load do; none is 404")
    prefix_blocks: int = knob(100_000, "how many blocks of 64 tokens the prefix cache keeps")

    start_delay: float = knob(0.0, "seconds until the port opens")
    load_delay: float = knob(0.0, "seconds after that until health is 200 and requests are served")
    slow_spawns: int = knob(0, "only the first so many spawns (by --spawn-counter) have these delays; 0: all")
    fail_spawns: int = knob(0, "the first so many spawns (by --spawn-counter) exit with --exit-code")
    exit_code: int = knob(0, "not 0: exits with it after the start delay; of --fail-spawns only those, 0 is 1")
    health: Literal["ok", "500", "hang"] = knob("ok", "what /health does")
    health_status: str = knob("ok", "the status that its body tells, with 200")
    listener: Literal["open", "closed"] = knob("open", "closed: it takes no connections any more, and drops idle ones")
    mode: Mode = knob("ok", "what generation does; no_done, cut, error_event and stall after --mode-tokens tokens")
    mode_tokens: int = knob(3, "tokens sent before that")
    mode_after: int = knob(0, "requests served well before the mode begins")
    mode_for: int = knob(0, "requests the mode lasts; 0: for ever")
    ill_generations: int = knob(
        0, "mode, health, health_status, sigterm, crash_after, second_factor only in generations up to this one; 0: all"
    )
    slots: int = knob(0, "requests served at once, others wait; 0: any number")
    one_at_a_time: bool = knob(False, "one slot, and health waits for it too")
    keep_generating: bool = knob(False, "a client that leaves does not end its generation")

    crash_after: int = knob(0, "the process dies in the request after so many; 0: never")
    crash_marker: str = knob("", "it dies in a request whose body contains this text")
    crash_tokens: int = knob(3, "tokens sent before it dies; 0: before any token")
    sigterm: Literal["exit", "now", "slow", "ignored"] = knob(
        "exit", "exit drains; now cuts; slow waits after draining"
    )
    term_seconds: float = knob(3.0, "how long slow waits")
    grandchild: Literal["none", "idle", "port", "memory"] = knob("none", "a child process that holds this")
    grandchild_setsid: bool = knob(False, "it has a session of its own")
    grandchild_ignores_term: bool = knob(False, "SIGTERM does not end it")
    grandchild_mb: int = knob(64, "megabytes that it holds")
    grandchild_pid_file: Path | None = knob(None, "where its pid is written")
    grandchild_life: int = knob(120, "seconds until it dies by itself, so that no test leaves one behind")
    memory_mb: float = knob(0.0, "megabytes held from the start")
    growth_mb: float = knob(0.0, "megabytes held more for each request")
    flood: int = knob(0, "bytes a second written to stdout")

    dialect: Literal["none", "omlx", "freetoken", "mlx-lm"] = knob("none", "whose log lines it writes to stdout")
    stats: Literal["full", "none"] = knob("full", "none: /stats is 404")
    acceptance: float = knob(0.0, "share of 4 drafted tokens accepted in a step; 0: no speculation")
    acceptance_to: float = knob(
        -1.0, "the same at the end of the decay, when steps take as long but give fewer; -1: it stays"
    )
    require_token: bool = knob(False, "asks for FRESHLANE_WORKER_TOKEN as Bearer, on every path")
    digest_file: Path | None = knob(None, "gets a JSON line for each generation, with the sha256 of its body")
    requests_file: Path | None = knob(None, "gets a JSON line for each request as it came: headers and body")
    age_file: Path | None = knob(None, "gets requests served, uptime and nominal rate after each request")


def parse(argv: list[str]) -> Knobs:
    parser = argparse.ArgumentParser(prog="fake_worker", description="A model server with a dial for its faults.")
    hints = typing.get_type_hints(Knobs)
    for one in dataclasses.fields(Knobs):
        flag, hint = "--" + one.name.replace("_", "-"), hints[one.name]
        told: dict[str, Any] = {"default": one.default, "help": one.metadata["help"]}
        if hint is bool:
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, **told)
        elif typing.get_origin(hint) is Literal:
            parser.add_argument(flag, choices=typing.get_args(hint), **told)
        else:
            parser.add_argument(flag, type=CONVERTERS.get(hint, str), **told)
    return Knobs(**vars(parser.parse_args(argv)))


class LiveKnobs:
    """The knobs as they are now: the command line's, with the control file's on top."""

    def __init__(self, start: Knobs) -> None:
        self._start = start
        self._now = _for_this_generation(start)
        self._looked_at = -1.0
        self._seen: tuple[int, int, int] | None = None

    def __call__(self, *, is_fresh: bool = False) -> Knobs:
        """As they were 20 ms ago at most; ``is_fresh``: now."""
        now = time.monotonic()
        if self._start.control is not None and (is_fresh or now - self._looked_at >= CONTROL_EVERY_S):
            self._looked_at = now
            self._look(self._start.control)
        return self._now

    def _look(self, control: Path) -> None:
        try:
            stat = control.stat()
            seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if seen == self._seen:
                return
            changes = json.loads(control.read_text())
        except (OSError, ValueError):
            return  # not there yet, or half written: the next look reads it
        self._seen = seen
        now = dataclasses.replace(self._start, **{name: _plain(value) for name, value in changes.items()})
        self._now = _for_this_generation(now)


def _for_this_generation(knobs: Knobs) -> Knobs:
    """A later generation than the ill ones is well."""
    if not knobs.ill_generations or int(os.environ.get("FRESHLANE_GENERATION", "0")) <= knobs.ill_generations:
        return knobs
    well: dict[str, Any] = {"mode": "ok", "health": "ok", "health_status": "ok", "listener": "open", "crash_after": 0}
    return dataclasses.replace(knobs, **well, sigterm="exit", second_factor=1.0)


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
