"""The page's files: public, whole, and bound to this daemon alone."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from supervisor.api.page import page_routes, read_files

DASHBOARD = Path(__file__).parents[2] / "supervisor/api/dashboard"


@pytest.fixture
async def visitor() -> AsyncIterator[aiohttp.ClientSession]:
    """Somebody who looks at the page."""
    app = web.Application()
    app.add_routes(page_routes())
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with aiohttp.ClientSession(f"http://{host}:{port}", timeout=aiohttp.ClientTimeout(total=20)) as client:
        yield client
    await runner.cleanup()


async def test_every_file_that_the_page_names_is_there(visitor: aiohttp.ClientSession) -> None:
    named = set(re.findall(r'"/dashboard/([^"]+)"', (DASHBOARD / "index.html").read_text()))
    for script in DASHBOARD.glob("*.js"):
        named |= set(re.findall(r'from "\./([^"]+)"', script.read_text()))
    assert len(named) > 20
    for name in named:
        async with visitor.get(f"/dashboard/{name}") as answer:
            assert answer.status == 200, name


async def test_nothing_but_this_daemon_can_be_asked(visitor: aiohttp.ClientSession) -> None:
    for path in ("/", "/dashboard/app.js", "/dashboard/style.css"):
        async with visitor.get(path) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            assert not re.search(r"https?://", (await answer.text()).replace("http://www.w3.org/2000/svg", ""))


async def test_a_file_that_has_not_changed_is_not_sent_again(visitor: aiohttp.ClientSession) -> None:
    async with visitor.get("/dashboard/style.css") as answer:
        tag = answer.headers["ETag"]
    async with visitor.get("/dashboard/style.css", headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304
        assert await answer.read() == b""


@pytest.mark.parametrize("path", ["/dashboard/", "/dashboard/vendor/uPlot.LICENSE", "/dashboard/..%2fpage.py"])
async def test_nothing_else_is_served(visitor: aiohttp.ClientSession, path: str) -> None:
    async with visitor.get(path) as answer:
        assert answer.status == 404


def test_each_file_is_small() -> None:
    assert sum(len(file.content) for file in read_files().values()) < 150_000
