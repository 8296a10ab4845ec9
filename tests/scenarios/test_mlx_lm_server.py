"""mlx_lm.server itself, under its preset: slowed from outside it is judged, drained, stopped by SIGINT, replaced."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from engine import blas
from engine.smollm2 import smollm2_folder
from tests.scenarios.slowed_model import CANARY, RECYCLE, slowed_and_cured

PROGRAMS = Path(sys.executable).parent


def with_a_fast_blas() -> dict[str, str]:
    """On Linux MLX has a slow one, which a preload replaces."""
    library, _ = blas.fast_library() if sys.platform == "linux" else (None, "")
    return {"LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"} if library else {}


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_mlx_lm_server_slowed_threefold_is_replaced_while_a_client_streams(tmp_path: Path) -> None:
    lane = {
        "preset": "mlx-lm",
        "model": str(smollm2_folder(lambda *_: None)),
        "env": with_a_fast_blas(),
        "replace": "in_place",
        "canary": CANARY,
        "recycle": RECYCLE,
    }
    path = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"}
    measured = await slowed_and_cured(tmp_path, "mlx", lane, env=path)
    record = measured.record
    print(record["cause"]["evidence"])
    assert record["stop"]["signal"] == "INT"
    assert not record["stop"]["killed"]
