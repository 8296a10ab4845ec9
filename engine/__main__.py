"""`python -m engine`: serve one model over HTTP until SIGTERM."""

from __future__ import annotations

from engine import blas


def main() -> None:
    """Start with OpenBLAS in front of MLX where that is needed, which may start this process once more."""
    blas.ensure_in_front()
    # Imported only now: nothing before this line may load MLX, or take the time of what comes with it.
    from engine.command import run  # noqa: PLC0415

    run()


if __name__ == "__main__":
    main()
