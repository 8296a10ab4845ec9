"""Measure the engine against mlx-lm's own plain decoding, and against itself with and without drafts.

    python bench/engine.py [--quick] [--json FILE]

Arms of one comparison take turns in one process, on one loaded model, from the same tokens.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from engine import blas

WITHOUT_BLAS_S = 900


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="few pairs: shows that it works, proves little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there, too")
    parser.add_argument("--without-blas", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    blas.ensure_in_front()
    # Imported only now: MLX must not be loaded before OpenBLAS is in front of it.
    from bench.engine_suite import compare, failures, machine, without_blas  # noqa: PLC0415

    if options.without_blas:
        finish(without_blas(options.quick))
    started = os.getloadavg()
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": machine(),
        "load_average": {"before": list(started)},
        "comparisons": compare(options.quick),
        "without_blas": in_a_process_of_its_own(options.quick),
    }
    result["load_average"]["after"] = list(os.getloadavg())
    result["failed"] = failures({**result["comparisons"], "without BLAS": result["without_blas"]})
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    finish(result)


def finish(result: dict[str, Any]) -> None:
    print(json.dumps(result, indent=2), flush=True)
    os._exit(1 if result.get("failed") else 0)  # at once, because MLX has been used in this process


def in_a_process_of_its_own(quick: bool) -> dict[str, Any]:
    """BLAS is chosen when a process starts."""
    print("without OpenBLAS", file=sys.stderr, flush=True)
    command = [sys.executable, __file__, "--without-blas", *(["--quick"] if quick else [])]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment[blas.STATE] = "off"
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=WITHOUT_BLAS_S, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


if __name__ == "__main__":
    main()
