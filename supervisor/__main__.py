"""``python -m supervisor`` is ``freshlane``."""

from __future__ import annotations

from supervisor.cli.app import main

if __name__ == "__main__":
    main()
