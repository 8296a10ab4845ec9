"""The front of a real daemon under attack: nobody gets in, nothing leaks, nothing hangs, nothing falls over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import stat
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane
from tests.waiting import wait_until

CLIENT_KEY, ADMIN_KEY, HEADER_KEY, ENV_KEY = "client-key-0123", "admin-key-4567", "upstream-key-89ab", "env-key-cdef"
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
ADMIN_PATHS = (
    ("GET", "/api/lanes"),
    ("GET", "/api/lanes/worker"),
    ("GET", "/api/lanes/worker/logs"),
    ("GET", "/api/lanes/worker/baseline"),
    ("DELETE", "/api/lanes/worker/baseline"),
    ("GET", "/api/recycles"),
    ("GET", "/api/samples"),
    ("GET", "/api/events"),
    ("POST", "/api/reload"),
    *(("POST", f"/api/lanes/worker/{what}") for what in ("probe", "recycle", "drain", "resume", "start", "stop")),
)


def guarded(**more: Any) -> dict[str, Any]:
    lane = quick_lane(headers={"Authorization": f"Bearer {HEADER_KEY}"}, env={"SECRET_TOKEN": ENV_KEY})
    return {**config(worker=lane), "api_keys": [CLIENT_KEY], "admin_keys": [ADMIN_KEY], **more}


async def status_of(daemon: RunningDaemon, method: str, path: str, **headers: str) -> int:
    assert daemon.session
    timeout = aiohttp.ClientTimeout(total=30)
    async with daemon.session.request(method, daemon.url + path, headers=headers, timeout=timeout) as answer:
        return answer.status


async def raw(daemon: RunningDaemon, content: bytes, within_s: float = 10.0) -> bytes:
    """Send these bytes and read to the end of the connection, or for so long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
    try:
        writer.write(content)
        if writer.can_write_eof():
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), within_s)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def head_of_answer(daemon: RunningDaemon, content: bytes) -> bytes:
    """Send these bytes and read the status line of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
    try:
        writer.write(content)
        return await asyncio.wait_for(reader.readline(), 15)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_no_admin_path_opens_to_a_client_or_a_guess_and_the_keys_never_show(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, guarded()) as daemon:
        await daemon.serving("worker")
        for method, path in ADMIN_PATHS:
            for headers in ({}, {"Authorization": f"Bearer {CLIENT_KEY}"}, {"x-api-key": ADMIN_KEY[:-1]}):
                assert await status_of(daemon, method, path, **headers) == 401, (method, path, headers)
            assert await status_of(daemon, method, f"{path}?key={ADMIN_KEY}") == 401
        assert await status_of(daemon, "GET", "/api/lanes", **{"x-api-key": ADMIN_KEY}) == 200
        assert await status_of(daemon, "GET", "/v1/models") == 401
        assert await status_of(daemon, "GET", "/v1/models", **{"x-api-key": CLIENT_KEY}) == 200
        assert await status_of(daemon, "GET", "/metrics") == 401
        assert await status_of(daemon, "GET", "/healthz") == 200
        told = json.dumps(
            [await daemon.get("/api/lanes"), await daemon.get("/api/recycles"), await daemon.get("/api/version")]
        )
        os.kill(daemon.pid, 10)  # USR1: the state goes to the log
        status, _ = await daemon.post("/api/reload")
        assert status == 200
        page = b"".join([await raw(daemon, b"GET /?x=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")])
        state = b"".join(file.read_bytes() for file in daemon.state_dir.rglob("*") if file.is_file())
        everything = told.encode() + daemon.log_path.read_bytes() + page + state
        token = (daemon.headers()["Authorization"]).partition(" ")[2]
        for key in (CLIENT_KEY, ADMIN_KEY, HEADER_KEY, ENV_KEY):
            assert key.encode() not in everything, key
        assert token.encode() not in told.encode() + daemon.log_path.read_bytes() + page


async def test_a_key_that_came_with_a_reload_is_kept_out_of_the_log_too(tmp_path: Path) -> None:
    """Here by the last words of a worker that had it in its header."""
    say = f"import sys; print('my key is {HEADER_KEY}-new'); sys.exit(3)  # {{port}}"
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        headers = {"Authorization": f"Bearer {HEADER_KEY}-new"}
        daemon.write_config(
            config(worker=quick_lane(), other=quick_lane(command=["python3", "-c", say], headers=headers))
        )
        assert (await daemon.post("/api/reload"))[0] == 200
        await daemon.lane_is("other", "backing_off")
        await wait_until(lambda: "my key is" in daemon.log(), 10, "the worker's last words")
        assert HEADER_KEY not in daemon.log()


async def test_all_that_is_kept_is_for_its_owner_alone(tmp_path: Path) -> None:
    os.umask(0)
    try:
        async with running_daemon(tmp_path, guarded()) as daemon:
            await daemon.serving("worker")
            await daemon.post("/api/lanes/worker/recycle?wait=true")
            for path in [daemon.state_dir, *daemon.state_dir.rglob("*")]:
                assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path
    finally:
        os.umask(0o022)


@pytest.mark.parametrize("path", ["/api/lanes", "/v1/models", "/", "/metrics"])
async def test_a_web_page_cannot_drive_the_daemon_by_a_rebound_name_or_from_its_own_origin(
    tmp_path: Path, path: str
) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane(start="on_demand"))) as daemon:
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7411", "evil.example:80"):
            assert await status_of(daemon, "GET", path, Host=host) == 403, host
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"):
            assert await status_of(daemon, "GET", path, Origin=origin) == 403, origin
            assert await status_of(daemon, "POST", "/api/lanes/worker/stop", Origin=origin) == 403
            body = json.dumps(chat(stream=False)).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nOrigin: {origin}\r\n"
            head += f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            assert b" 403 " in (await head_of_answer(daemon, head.encode() + body))
        twice = b"GET /api/lanes HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert b" 200 " not in (await head_of_answer(daemon, twice))
        absolute = b"GET http://evil.example/api/lanes HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert b" 403 " in (await head_of_answer(daemon, absolute))


async def test_heads_and_bodies_have_limits(tmp_path: Path) -> None:
    whole = {**config(worker=quick_lane()), "max_body": "1MB"}
    async with running_daemon(tmp_path, whole) as daemon:
        await daemon.serving("worker")
        before = psutil.Process(daemon.pid).memory_info().rss
        long = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 1_000_000 + b"\r\n\r\n"
        many = (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
            + b"".join(b"X-%d: a\r\n" % n for n in range(5000))
            + b"\r\n"
        )
        path = b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for content in (long, many, path):
            assert (await head_of_answer(daemon, content)).split(b" ")[1:2] in ([b"400"], [b"431"], [b"414"], [])
        endless = POST + b"Transfer-Encoding: chunked\r\n\r\n"
        endless += b"100000\r\n" + b"a" * 0x100000 + b"\r\n" + b"100000\r\n" + b"a" * 0x100000
        assert b" 413 " in (await head_of_answer(daemon, endless))
        told = POST + b"Content-Length: 99999999999\r\n\r\n"
        assert b" 413 " in (await head_of_answer(daemon, told))
        wish = (
            b"POST /api/lanes/worker/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000000\r\n\r\n"
            + b" " * 9_000_000
        )
        assert (await head_of_answer(daemon, wish)).split(b" ")[1] in (b"400", b"413")
        deep = b"[" * 200_000
        head = POST + b"Content-Length: %d\r\n\r\n" % len(deep)
        assert b" 400 " in (await head_of_answer(daemon, head + deep))
        assert (await ask(daemon, chat()))[0] == 200
        assert psutil.Process(daemon.pid).memory_info().rss - before < 100_000_000
        assert "Traceback" not in daemon.log()


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_slow_loris_is_cut_off_and_nobody_else_notices(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        silent = [await asyncio.open_connection("127.0.0.1", daemon.port) for _ in range(50)]
        dripping = [await asyncio.open_connection("127.0.0.1", daemon.port) for _ in range(50)]

        async def drip() -> None:
            for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"a" * 100:
                for _, writer in dripping:
                    writer.write(bytes([byte]))
                await asyncio.sleep(0.5)

        dripper = asyncio.ensure_future(drip())
        try:
            assert (await ask(daemon, chat(), 10))[0] == 200
            for reader, _ in silent + dripping:
                with contextlib.suppress(
                    ConnectionResetError
                ):  # a byte that crossed the end; it is cut off all the same
                    assert await asyncio.wait_for(reader.read(), 40) == b""
            assert (await ask(daemon, chat(), 10))[0] == 200
        finally:
            dripper.cancel()
            for _, writer in silent + dripping:
                writer.close()


@pytest.mark.slow
async def test_garbage_is_answered_or_dropped_and_never_a_fault(tmp_path: Path) -> None:
    dice = random.Random(3)
    samples = [
        b"\x00" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + dice.randbytes(300),  # TLS
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/%00/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/lanes/%2e%2e%2f%2e%2e HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        POST + b"Content-Type: multipart/form-data\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/samples?since=nan&lane=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/recycles?limit=99999999999999999999 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]
    valid = POST + b"Content-Length: 90\r\n\r\n" + json.dumps(chat()).encode()
    for _ in range(200):
        broken = bytearray(valid)
        for _ in range(dice.randrange(1, 6)):
            broken[dice.randrange(len(broken))] = dice.randrange(256)
        samples.append(bytes(broken[: dice.randrange(1, len(broken))]))
    samples += [dice.randbytes(dice.randrange(1, 2000)) for _ in range(100)]
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        for sample in samples:
            answer = await raw(daemon, sample)
            assert b" 500 " not in answer.split(b"\r\n")[0], (sample, answer)
        assert "Traceback" not in daemon.log()
        assert "request_failed" not in daemon.log()
        assert (await ask(daemon, chat()))[0] == 200
        snapshot = await daemon.lane("worker")
        assert (snapshot["inflight"], snapshot["queued"]) == (0, 0)


async def test_workers_and_the_daemon_listen_on_loopback_alone(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        worker = (await daemon.serving("worker"))["worker"]
        addresses = {
            connection.laddr.ip
            for pid in (worker["pid"], daemon.pid)
            for connection in psutil.Process(pid).net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert addresses == {"127.0.0.1"}


async def test_a_clients_key_never_reaches_a_worker(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    lane = quick_lane({"requests_file": requests}, headers={"Authorization": f"Bearer {HEADER_KEY}"})
    whole = {**config(worker=lane), "api_keys": [CLIENT_KEY]}
    async with running_daemon(tmp_path / "daemon", whole) as daemon:
        await daemon.serving("worker")
        assert daemon.session
        for headers in ({"Authorization": f"Bearer {CLIENT_KEY}"}, {"x-api-key": CLIENT_KEY}):
            url = f"{daemon.url}/v1/chat/completions"
            async with daemon.session.post(url, json=chat(stream=False), headers=headers) as answer:
                assert answer.status == 200
        seen = requests.read_text()
        assert CLIENT_KEY not in seen
        assert HEADER_KEY in seen


async def test_a_daemon_beyond_loopback_without_keys_is_refused(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path, {**config(worker=quick_lane()), "listen": "0.0.0.0:7411"})
    try:
        await daemon.start()
        assert daemon.process
        assert await asyncio.wait_for(daemon.process.wait(), 30) == 2
        assert "api_keys" in daemon.log()
    finally:
        await daemon.kill()
        if daemon.session:
            await daemon.session.close()
