"""OpenBLAS in front of MLX's reference BLAS on a Linux CPU, where it makes decoding several times as fast.

The dynamic linker takes a preloaded library only when a process starts, so the engine starts itself once more with
LD_PRELOAD. Needs the wheel `scipy-openblas32` and a C compiler for a shim of three functions; or the system's
libopenblas.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from engine.cache_folder import cache_folder

STATE = "FRESHLANE_BLAS"
"""A person may set it to `off`, which leaves MLX's BLAS alone; the engine sets `in_front` or `missing` for itself."""
COMPILE_S = 60.0
SHIM = Path(__file__).with_name("openblas_shim.c")


def ensure_in_front() -> None:
    """Call before the first import of mlx: may replace this process by itself, with OpenBLAS in front.

    Does nothing on macOS, with CUDA, when switched off, or when it has been here before. Never fails: without OpenBLAS
    the engine runs, slowly, and says so on stderr.
    """
    if sys.platform != "linux" or _has_cuda() or os.environ.get(STATE):
        return
    library, complaint = fast_library()
    if library is None:
        os.environ[STATE] = "missing"
        sys.stderr.write(f"OpenBLAS is not in front of MLX, decoding will be slow: {complaint}\n")
        return
    preload = ":".join(filter(None, [str(library), os.environ.get("LD_PRELOAD")]))
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "1")
    environment = {**os.environ, STATE: "in_front", "LD_PRELOAD": preload, "OPENBLAS_NUM_THREADS": threads}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606  this same command again


def state() -> str:
    """`in_front`, `missing`, `off`, or `not_needed`; for /stats."""
    return os.environ.get(STATE) or "not_needed"


def _has_cuda() -> bool:
    names = (distribution.name or "" for distribution in importlib.metadata.distributions())
    return any(name.lower().replace("_", "-").startswith("mlx-cuda") for name in names)


def fast_library() -> tuple[Path | None, str]:
    """What to preload, or None and why there is nothing."""
    spec = importlib.util.find_spec("scipy_openblas32")
    folders = [Path(folder) / "lib" for folder in (spec.submodule_search_locations or [])] if spec else []
    found = next((file for folder in folders for file in folder.glob("libscipy_openblas*.so")), None)
    if found is not None:
        try:
            return _shim_over(found), ""
        except (OSError, subprocess.SubprocessError) as error:
            complaint = f"its shim could not be built ({error}); install a C compiler"
    else:
        complaint = "the package scipy-openblas32 is not installed"
    with contextlib.suppress(OSError):
        if system := ctypes.util.find_library("openblas"):
            return Path(system), ""
    return None, f"{complaint}, or the system's libopenblas"


def _shim_over(openblas: Path) -> Path:
    """The compiled shim for this OpenBLAS, built on first use (0.1 s)."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    identity = hashlib.sha256(SHIM.read_bytes() + str(openblas).encode()).hexdigest()[:16]
    shim = cache_folder() / "blas" / f"openblas-{identity}.so"
    if shim.is_file():
        return shim
    if compiler is None:
        raise FileNotFoundError("no cc, gcc or clang on PATH")
    shim.parent.mkdir(parents=True, exist_ok=True)
    unfinished = shim.with_suffix(f".{os.getpid()}")
    command = [
        compiler,
        "-O2",
        "-shared",
        "-fPIC",
        "-o",
        str(unfinished),
        str(SHIM),
        str(openblas),
        f"-Wl,-rpath,{openblas.parent}",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_S)
    unfinished.rename(shim)
    return shim
