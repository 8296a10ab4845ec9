"""A `launchctl` on the PATH that notes how it was called and answers what was written down before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

PROGRAM = """#!{python} -IS
import json, sys
from pathlib import Path
folder = Path({folder!r})
call = " ".join(sys.argv[1:])
with (folder / "calls").open("a") as calls:
    calls.write(call + "\\n")
earlier = (folder / "calls").read_text().splitlines().count(call) - 1
answers = json.loads((folder / "answers.json").read_text()).get(call, [[0, ""]])
code, text = answers[min(earlier, len(answers) - 1)]
print(text, end="", file=sys.stdout if code == 0 else sys.stderr)
sys.exit(code)
"""

NOT_FOUND = (
    113,
    'Bad request.\nCould not find service "dev.freshlane.daemon" in domain for user gui: 501\n',
)
NO_DOMAIN = (125, "Bad request.\nCould not print domain: 125: Domain does not support specified action\n")
DOMAIN = (0, "gui/501 = {\n\ttype = login\n\thandle = 100003\n}\n")
BUSY = (5, "Bootstrap failed: 5: Input/output error\nTry re-running the command as root for richer errors.\n")
DONE = (0, "")
RUNNING = (
    0,
    """gui/501/dev.freshlane.daemon = {
\tactive count = 1
\tpath = /Users/ann/Library/LaunchAgents/dev.freshlane.daemon.plist
\ttype = LaunchAgent
\tstate = running

\tprogram = /Users/ann/freshlane/bin/freshlane
\targuments = {
\t\t/Users/ann/freshlane/bin/freshlane
\t\trun
\t}

\tdomain = gui/501 [100003]
\tasid = 100003
\tminimum runtime = 10
\texit timeout = 133
\truns = 1
\tpid = 4711
\timmediate reason = speculative
\tforks = 2
\texecs = 1
\tlast exit code = (never exited)

\tspawn type = interactive (4)
\tjetsam priority = 40
}
""",
)
ENDED = (0, RUNNING[1].replace("\tpid = 4711\n", "").replace("state = running", "state = not running"))
ENDED = (0, ENDED[1].replace("(never exited)", "0"))


class FakeLaunchctl:
    """Answers by whole calls, in turn; the last answer is repeated. A call that nobody wrote down succeeds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "launchctl"
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        program.chmod(0o755)

    def answers(self, **answers: list[tuple[int, str]]) -> None:
        """By call; to be given as ``**{"print gui/501": [...]}``."""
        (self.folder / "answers.json").write_text(json.dumps(answers))

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []
