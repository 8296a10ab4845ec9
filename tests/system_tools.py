"""Programs of the operating system that some tests need."""

from __future__ import annotations

import os
import shutil

import pytest


def system_tool(*names: str, package: str) -> str:
    """The path of the first of these programs that is there.

    Skips where a developer has none; fails on a machine where .ci/run installs it, so that no test is left out unseen.
    """
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        missing = f"{names[0]} is not installed: apt-get install {package}"
        if os.geteuid() == 0 and shutil.which("apt-get"):
            pytest.fail(f"{missing} (.ci/run does)")
        pytest.skip(missing)
    return path
