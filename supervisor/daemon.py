"""The composition root: builds everything, listens, minds the signals, and takes it all down in order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path

import structlog
import uvloop
from aiohttp import web

from supervisor import logs
from supervisor.api.app import build_app
from supervisor.api.listener import listening
from supervisor.api.page import page_routes
from supervisor.config import ConfigError, Loaded, load
from supervisor.errors import FreshlaneError
from supervisor.history import History
from supervisor.journal import Journal
from supervisor.jsontext import encode
from supervisor.settings import Settings
from supervisor.shell.device import Device
from supervisor.shell.eventbus import EventBus
from supervisor.shell.fleet import Fleet
from supervisor.shell.front.held_bytes import HeldBytes
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.lane.surroundings import Surroundings
from supervisor.shell.machine import ports
from supervisor.shell.machine.clock import Clock
from supervisor.shell.machine.host import Host
from supervisor.shell.machine.host_reference import HostReference
from supervisor.shell.machine.panics import recent_gpu_panic
from supervisor.shell.service.fleet_health import FleetHealth
from supervisor.shell.service.notify import Notifier
from supervisor.shell.service.refusal_note import forget_refusal, keep_refusal
from supervisor.shell.slots import Slots
from supervisor.shell.tasks import Tasks
from supervisor.shell.worker.ledger import Ledger
from supervisor.token import ensure_token

log = structlog.get_logger(__name__)

OK, FAILED, BAD_CONFIG, PORT_TAKEN = 0, 1, 2, 69
HISTORY_FILE = "history.sqlite"
REST_AFTER_PANIC_S = 3600.0


class PortTakenError(FreshlaneError):
    """Somebody else listens where we should."""

    def __init__(self, host: str, port: int) -> None:
        holder = ports.holder_of(port)
        by = f"pid {holder[0]} ({holder[1]})" if holder else "another process"
        super().__init__(f"{host}:{port} is taken by {by}; stop it, or set `listen` in lanes.yaml to another port")


class CannotListenError(FreshlaneError):
    """The address is not ours to listen on, or not yet."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"cannot listen on {host}:{port}: {reason}; set `listen` to an address of this machine")


def run(config_path: Path, under: str | None = None) -> int:
    """Run the daemon until it is told to stop; the exit code, in the terms of what it runs ``under``."""
    try:
        loaded = load(config_path)
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return _refused(BAD_CONFIG, str(error), under)
    settings = loaded.settings
    with contextlib.closing(logs.configure(settings.log, secrets=settings.secrets())) as written:
        try:
            return uvloop.run(Daemon(loaded, config_path, written).run(under))
        except PortTakenError as error:
            log.error("port_taken", error=str(error))
            return _refused(PORT_TAKEN, str(error), under)
        except FreshlaneError as error:
            log.error("daemon_failed", error=str(error))
            return FAILED


def _refused(code: int, reason: str, under: str | None) -> int:
    """Starting again would not help. launchd has no exit codes for that: it starts again whatever did not end in 0."""
    keep_refusal(code, reason)
    return OK if under == "launchd" else code


class Daemon:
    """One life of the daemon."""

    def __init__(self, loaded: Loaded, config_path: Path, written: logs.Logs) -> None:
        self._loaded = loaded
        self._log = written
        self._config_path = config_path
        self._tasks = Tasks()
        self._notifier = Notifier()
        self._stop = asyncio.Event()
        self._stop_now = asyncio.Event()

    async def run(self, under: str | None) -> int:
        """Come up, serve until a signal, go down."""
        for number in (signal.SIGHUP, signal.SIGUSR1):  # nothing to reload or to show yet; by default they would kill
            asyncio.get_running_loop().add_signal_handler(number, log.info, "not_up_yet")
        self._tasks.start(self._notifier.run(), "tell the service manager")
        try:
            await self._live(under)
        finally:
            await self._tasks.close()
            self._notifier.close()
        return OK

    async def _live(self, under: str | None) -> None:
        settings = self._loaded.settings
        async with self._surroundings(settings, under) as around:
            fleet = Fleet(self._loaded, self._config_path, around, version=metadata.version("freshlane"))
            fleet.while_reloading = self._notifier.reloading
            fleet.on_settings = lambda new: self._log.hide(new.secrets())
            self._mind_signals(fleet)
            app = build_app(fleet, token=ensure_token(settings.state_dir), more=page_routes())
            async with _listening(app, settings):
                await fleet.open()
                log.info("listening", url=f"http://{settings.listen}", lanes=list(settings.lanes), under=under)
                forget_refusal()
                self._notifier.ready(FleetHealth(fleet, around.host))
                await self._stop.wait()
                await self._go_down(fleet)
            await fleet.close()

    @asynccontextmanager
    async def _surroundings(self, settings: Settings, under: str | None) -> AsyncIterator[Surroundings]:
        """What all lanes share, opened in order and closed in the opposite one."""
        clock = Clock()
        ledger = Ledger(settings.state_dir)
        ledger.claim()
        async with contextlib.AsyncExitStack() as closing:
            closing.callback(ledger.release)
            for survivor in await ledger.reap_survivors():
                log.warning("survivor", lane=survivor.entry.lane, killed=survivor.killed, left=sorted(survivor.left))
            journal = Journal(settings.state_dir)
            for record in await journal.open():
                log.warning("recycle_aborted", lane=record["lane"], id=record["id"], next=record["next"])
            closing.push_async_callback(journal.close)
            history = History(settings.state_dir / HISTORY_FILE, keep_s=settings.history.keep, wall=clock.wall)
            await history.open()
            closing.push_async_callback(history.close)
            host = Host()
            host.start()
            closing.callback(host.close)
            closing.push_async_callback(self._tasks.close)
            reference = HostReference()
            closing.push_async_callback(reference.close)
            device = Device()
            await _heed_panics(device, clock)
            yield Surroundings(
                settings.state_dir,
                settings.log,
                clock,
                host,
                device,
                ledger,
                journal,
                history,
                EventBus(),
                Slots(settings.fleet.max_starting),
                Slots(settings.fleet.max_recycling),
                HeldBytes(settings.max_body),
                under,
                reference=reference,
            )

    async def _go_down(self, fleet: Fleet) -> None:
        """Drain and stop the lanes; a second signal makes it cut."""
        log.info("stopping", grace_s=fleet.settings.fleet.shutdown_timeout)
        self._notifier.stopping()
        stopping = self._tasks.start(fleet.stop(), "stop the lanes")
        hurry = self._tasks.start(self._stop_now.wait(), "a second signal")
        await asyncio.wait({stopping, hurry}, return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            log.warning("stopping_now")
            await fleet.stop(is_now=True)
        await stopping
        fleet.events.close()

    # ---- signals ----

    def _mind_signals(self, fleet: Fleet) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        loop.add_signal_handler(signal.SIGHUP, lambda: self._tasks.start(_reload(fleet), "reload"))
        loop.add_signal_handler(signal.SIGUSR1, lambda: log.info("state", dump=encode(fleet.snapshot())))

    def _told_to_stop(self) -> None:
        if self._stop.is_set():
            self._stop_now.set()
        self._stop.set()


async def _heed_panics(device: Device, clock: Clock) -> None:
    """After a panic of the GPU's driver, no canaries for a while: they have been seen to bring it about."""
    panic = await asyncio.to_thread(recent_gpu_panic, clock.wall())
    if panic:
        device.rest(clock.now() + REST_AFTER_PANIC_S, f"the machine went down in {panic.mark} lately")
        log.warning(
            "gpu_panic_found",
            report=str(panic.path),
            mark=panic.mark,
            next=f"no canaries for {REST_AFTER_PANIC_S / 60:.0f} minutes",
        )


async def _reload(fleet: Fleet) -> None:
    try:
        await fleet.reload()
    except ConfigError as error:
        log.error("reload_refused", error=str(error), remedy="nothing was changed; mend the file and reload again")
    except RefusedError as error:
        log.warning("reload_refused", error=str(error))


@asynccontextmanager
async def _listening(app: web.Application, settings: Settings) -> AsyncIterator[None]:
    host, port = settings.listen_host, settings.listen_port
    if ports.is_taken(port, host):
        raise PortTakenError(host, port)
    async with contextlib.AsyncExitStack() as closing:
        try:
            await closing.enter_async_context(listening(app, host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTakenError(host, port) from error
            raise CannotListenError(host, port, error) from error
        yield
