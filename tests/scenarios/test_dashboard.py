"""The page in a real Chromium, before a real daemon with fake workers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import expect

from tests.scenarios.browser import DESK, PHONE, visiting
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import BUSY_CANARY, RESTING_CANARY, config, quick_lane, record
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

KEY = "let-me-in"


BUSY = {**BUSY_CANARY, "prompt_tokens": [256, 1024], "timeout": "10s", "host_check": "off"}
PATIENT = {"after": "60s", "pulse": "60s"}


def lanes(canary: dict[str, Any] = RESTING_CANARY, **keys: Any) -> dict[str, Any]:
    worker = quick_lane({"tok_s": 200}, canary={**canary}, hang={**PATIENT})
    return {**config(worker=worker, other=quick_lane({"tok_s": 100}, hang={**PATIENT})), **keys}


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[RunningDaemon]:
    async with running_daemon(tmp_path / "daemon", lanes()) as running:
        await running.serving("worker")
        yield running


async def measured(daemon: RunningDaemon, lane: str) -> None:
    async def fact() -> bool:
        runs = await daemon.samples(lane)
        return {256, 1024} <= {run["prompt_tokens"] for run in runs if run["void"] is None}

    await wait_until(fact, 90.0, f"runs of both sizes; see {daemon.log_path}")


async def test_lanes_and_their_speed_are_seen_and_nobody_else_is_asked(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", lanes(canary=BUSY)) as daemon:
        await measured(daemon, "worker")
        async with visiting(daemon.url) as visit:
            page = visit.page
            await expect(page.get_by_role("heading", name="worker", exact=True)).to_be_visible()
            # A busy machine makes a fake worker slow, and then it is suspected.
            await expect(page.locator(".who .state")).to_have_text(re.compile("serving|suspect"))
            await expect(page.locator(".facts")).to_contain_text("tok/s")
            await expect(page.locator("#line")).to_contain_text("live")
            await page.get_by_role("tab", name="1024-token prompts").click()
            await expect(page.locator(".plot")).to_have_attribute("aria-label", re.compile("at 1024 prompt.*: [1-9]"))
            await page.keyboard.press("ArrowLeft")
            await expect(page.get_by_role("tab", name="256-token prompts")).to_be_focused()
            await expect(page.locator(".plot")).to_have_attribute("aria-label", re.compile("at 256 prompt.*: [1-9]"))
            await page.get_by_role("button", name="other").click()
            await expect(page.get_by_role("heading", name="other", exact=True)).to_be_visible()
            assert visit.complaints == []
            assert {url for url in visit.asked if not url.startswith(daemon.url)} == set()


async def test_a_recycle_is_asked_for_confirmed_seen_live_and_read(daemon: RunningDaemon) -> None:
    async with visiting(daemon.url) as visit:
        page = visit.page
        await page.get_by_role("button", name="Recycle", exact=True).click()
        dialog = page.get_by_role("dialog", name="Recycle worker?")
        await dialog.get_by_label("Reason").fill("it felt slow")
        assert await daemon.recycles("worker") == []
        await dialog.get_by_role("button", name="Recycle").click()
        found = await record(daemon, "operator", within_s=60.0)
        assert "it felt slow" in found["reason"]
        marker = page.locator(".marker")
        await expect(marker).to_have_count(1)
        await marker.focus()
        await page.keyboard.press("Enter")
        shown = page.get_by_role("dialog", name="Recycle of worker")
        await expect(shown).to_contain_text("it felt slow")
        await page.keyboard.press("Escape")
        await expect(shown).to_have_count(0)
        await expect(marker).to_be_focused()
        await expect(page.locator("#worth")).to_contain_text("1 recycle,")
        assert visit.complaints == []


async def test_cancelling_does_nothing_and_a_drained_lane_can_be_resumed(daemon: RunningDaemon) -> None:
    async with visiting(daemon.url) as visit:
        page = visit.page
        await page.get_by_role("button", name="Drain").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert (await daemon.lane("worker"))["state"] == "serving"
        await page.get_by_role("button", name="Drain").click()
        await page.get_by_role("dialog").get_by_role("button", name="Drain").click()
        await expect(page.locator(".who .state")).to_have_text("drained")
        await expect(page.locator("#spoken")).to_contain_text("worker is drained")
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_role("dialog").get_by_role("button", name="Resume").click()
        await expect(page.locator(".who .state")).to_have_text("serving")


async def test_what_a_worker_writes_is_shown_as_text_whatever_it_is(daemon: RunningDaemon) -> None:
    path = daemon.state_dir / "logs" / "worker.log"
    path.parent.mkdir(exist_ok=True)
    path.write_text("<img src=x onerror=alert(1)> loaded\n")
    async with visiting(daemon.url) as visit:
        await visit.page.get_by_text("Worker output").click()
        await expect(visit.page.locator(".output")).to_contain_text("<img src=x onerror=alert(1)> loaded")
        assert visit.complaints == []


async def test_the_page_asks_for_a_key_and_keeps_only_a_cookie_that_scripts_cannot_read(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", lanes(api_keys=[KEY])) as daemon:
        await daemon.serving("worker")
        async with visiting(daemon.url) as visit:
            page = visit.page
            await page.get_by_label("Admin key").fill("wrong")
            await page.get_by_role("button", name="Log in").click()
            await expect(page.get_by_role("alert").filter(has_text="no key of an admin")).to_be_visible()
            await page.get_by_label("Admin key").fill(KEY)
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name="worker", exact=True)).to_be_visible()
            await expect(page.locator("#line")).to_contain_text("live")
            assert await page.evaluate("document.cookie + JSON.stringify([localStorage, sessionStorage])") == "[{},{}]"
            await daemon.end()
            await daemon.start()
            await daemon.listening()
            await expect(page.get_by_label("Admin key")).to_be_visible(timeout=30_000)


async def test_a_daemon_that_comes_back_is_seen_again_without_a_reload(daemon: RunningDaemon) -> None:
    async with visiting(f"{daemon.url}/#%") as visit:
        page = visit.page
        await expect(page.locator("#line")).to_contain_text("live")
        await daemon.end()
        await expect(page.locator("#line")).to_have_text("no connection, trying again")
        await daemon.start()
        await daemon.serving("worker")
        await expect(page.locator("#line")).to_contain_text("live", timeout=20_000)
        await expect(page.locator(".who .state")).to_have_text("serving")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_in_light_and_dark_on_desk_and_phone(
    daemon: RunningDaemon, scheme: str
) -> None:
    await daemon.post("/api/lanes/worker/recycle?wait=true")
    for viewport in (DESK, PHONE):
        # The page's own policy forbids the foreign script that looks at it.
        async with visiting(daemon.url, viewport=viewport, color_scheme=scheme, bypass_csp=True) as visit:
            page = visit.page
            await expect(page.locator(".marker")).to_have_count(1)
            await page.get_by_text("Worker output").click()
            await nothing_serious(page)
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= viewport["width"], "the page is wider than the screen"
            await page.locator(".recycle").first.click()
            await nothing_serious(page)


async def nothing_serious(page: Any) -> None:
    found = await Axe().run(page)
    serious = [one for one in found.response["violations"] if one["impact"] in ("serious", "critical")]
    assert serious == [], [(one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"]) for one in serious]
