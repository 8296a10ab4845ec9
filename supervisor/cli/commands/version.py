"""``freshlane version``"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from supervisor.cli.terminal import say


def version() -> None:
    """Print the version."""
    say(f"freshlane {own_version()} (Python {platform.python_version()}, {platform.system()} {platform.machine()})")


def own_version() -> str:
    """The installed version; `unknown` in a bare checkout."""
    try:
        return version_of("freshlane")
    except PackageNotFoundError:
        return "unknown"
