"""The recycle log: what was about to be done to a worker, and what came of it, durable before it counts."""

from supervisor.journal.journal import Journal

__all__ = ["Journal"]
