"""The engine's command line, and its life from start to exit."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from typing import NoReturn, get_args

from aiohttp import web

from engine.errors import ModelError
from engine.request import EngineSettings, Method
from engine.server import make_app
from engine.service import Service

EXIT_NO_MODEL = 2
EXIT_NO_PORT = 3
EXIT_FAULT = 70
FLUSH_S = 2.0
"""After draining, handlers have so long to send what is left."""


def run() -> NoReturn:
    """Serve, then exit."""
    options = _parse(sys.argv[1:])
    logging.basicConfig(level=options.log_level.upper(), format="%(levelname)s %(message)s", stream=sys.stderr)
    code = asyncio.run(_serve(options))
    sys.stdout.flush()
    sys.stderr.flush()
    # A process whose thread has used MLX aborts when the interpreter takes itself apart.
    os._exit(code)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m engine", description="Serve one model over OpenAI's HTTP API.")
    parser.add_argument("--model", required=True, help="smollm2-135m, a folder, or a hub id (owner/name)")
    parser.add_argument("--port", required=True, type=int, help="0 takes a free one and says which")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--speculation", default="auto", choices=get_args(Method))
    parser.add_argument("--draft", default=None, metavar="PATH", help="a draft model, or a DFlash checkpoint")
    parser.add_argument(
        "--draft-window", default=0, type=int, metavar="N", help="positions a DFlash draft sees; 0: all"
    )
    parser.add_argument("--draft-sink", default=0, type=int, metavar="N", help="first positions it sees besides")
    parser.add_argument("--max-draft", default=15, type=int, metavar="N", help="most tokens drafted at once")
    parser.add_argument(
        "--prefix-ram",
        default=None,
        type=_bytes,
        metavar="BYTES",
        help="memory that finished prompts may keep, or auto",
    )
    parser.add_argument(
        "--prefix-disk",
        default=0,
        type=int,
        metavar="BYTES",
        help="disk for finished prompts that leave that memory; 0: none",
    )
    parser.add_argument("--prefix-folder", default=None, metavar="DIR", help="where on disk; wants one of its own")
    parser.add_argument("--max-context", default=None, type=int, metavar="TOKENS")
    parser.add_argument(
        "--drain-timeout", default=25.0, type=float, metavar="S", help="how long SIGTERM waits for answers under way"
    )
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser.parse_args(arguments)


def _bytes(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of bytes nor auto")
    return int(text)


async def _serve(options: argparse.Namespace) -> int:
    stopping = asyncio.Event()
    _listen_for_signals(stopping)
    settings = EngineSettings(
        options.model,
        options.speculation,
        options.max_draft,
        options.prefix_ram,
        options.max_context,
        options.draft,
        options.draft_window,
        options.draft_sink,
        options.prefix_disk,
        options.prefix_folder,
    )
    number = os.environ.get("FRESHLANE_GENERATION", "")
    service = Service(settings, int(number) if number.isdecimal() else None)
    app = make_app(service, os.environ.pop("FRESHLANE_WORKER_TOKEN", None))
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=FLUSH_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, options.host, options.port).start()
    except OSError as error:
        _say(f"cannot listen on {options.host}:{options.port}: {error.strerror or error}")
        return EXIT_NO_PORT
    port = runner.addresses[0][1]
    _say(f"listening on http://{options.host}:{port}, loading {options.model}")
    return await _live(service, runner, stopping, options.drain_timeout)


async def _live(service: Service, runner: web.AppRunner, stopping: asyncio.Event, drain_s: float) -> int:
    stop = asyncio.ensure_future(stopping.wait())
    load = asyncio.ensure_future(service.load())
    await asyncio.wait((stop, load), return_when=asyncio.FIRST_COMPLETED)
    if not load.done():
        return 0
    if isinstance(error := load.exception(), ModelError):
        _say(str(error))
        return EXIT_NO_MODEL
    info = await load
    _say(f"serving {info.id}, context {info.context_length}")
    end = asyncio.ensure_future(service.thread.ended())
    await asyncio.wait((stop, end), return_when=asyncio.FIRST_COMPLETED)
    if end.done():
        _say("the decode thread has ended; exiting")
        return EXIT_FAULT
    _say("draining")
    await service.drain(drain_s)
    await runner.cleanup()
    return 0


def _listen_for_signals(stopping: asyncio.Event) -> None:
    """The first SIGTERM or SIGINT drains; another one ends the process at once."""

    def heard() -> None:
        if stopping.is_set():
            os._exit(0)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError):
            asyncio.get_running_loop().add_signal_handler(number, heard)


def _say(line: str) -> None:
    sys.stderr.write(f"engine: {line}\n")
    sys.stderr.flush()
