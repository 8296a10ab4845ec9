"""A real browser: Debian's Chromium, driven by Playwright, that asks nobody but the daemon under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Page, ViewportSize, async_playwright

from tests.system_tools import system_tool

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = 30_000
DESK, PHONE = ViewportSize(width=1240, height=1000), ViewportSize(width=390, height=844)


@dataclass
class Visit:
    """A page that is looked at, and what went wrong or went elsewhere on it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@asynccontextmanager
async def visiting(url: str, *, viewport: ViewportSize = DESK, **options: Any) -> AsyncIterator[Visit]:
    """The page at ``url``, in a browser that knows nothing yet. ``options`` are those of a Playwright context."""
    chromium = system_tool(*BROWSERS, package="chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        context = await browser.new_context(viewport=viewport, **options)
        context.set_default_timeout(PATIENCE_MS)
        visit = Visit(await context.new_page())
        visit.page.on("console", lambda said: said.type in ("error", "warning") and visit.complaints.append(said.text))
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("request", lambda request: visit.asked.append(request.url))
        try:
            await visit.page.goto(url)
            yield visit
        finally:
            await context.close()
            await browser.close()
