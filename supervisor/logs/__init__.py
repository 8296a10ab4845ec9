"""The daemon's own log: for people on a terminal, one JSON object a line everywhere else.

Lines are written by a thread of their own, so that a stuck terminal or pipe never stops the loop; when its queue is
full, lines are dropped and counted. Secrets do not get in.
"""

from supervisor.logs.configure import configure, configure_logs
from supervisor.logs.logs import Logs

__all__ = ["Logs", "configure", "configure_logs"]
