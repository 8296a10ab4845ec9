"""`python tests/fake_worker --port N ...`, from any folder. See tests.fakes.fake_command."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

import asyncio  # noqa: E402

from tests.fake_worker.knobs import LiveKnobs, parse  # noqa: E402
from tests.fake_worker.server import Server  # noqa: E402


async def main() -> int:
    return await Server(LiveKnobs(parse(sys.argv[1:]))).run()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(), debug=False))  # its speed must not depend on the tests' debug mode
