"""What was measured and what became of it, kept over daemon restarts in one SQLite file."""

from supervisor.history.history import History

__all__ = ["History"]
