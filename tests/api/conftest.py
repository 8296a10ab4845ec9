"""A served fleet in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.api.small_fleet import SmallFleet, served


@pytest.fixture
def small_fleet(tmp_path: Path) -> SmallFleet:
    return SmallFleet(tmp_path)


@pytest.fixture
async def small_client(small_fleet: SmallFleet) -> AsyncIterator[aiohttp.ClientSession]:
    async with served(small_fleet) as client:
        yield client
