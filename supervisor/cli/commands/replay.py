"""``freshlane replay``: the judge on recorded numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from supervisor import jsontext
from supervisor.cli.exits import UsageError
from supervisor.cli.options import JsonOption
from supervisor.cli.terminal import print_json, say
from supervisor.core.samples import Status
from supervisor.core.speed.replay import Loss, Recorded, Said, losses, replay, slow_from_the_start

SHIPPED = Path(__file__).parents[2] / "replays"
SUFFIX = ".jsonl"
USUAL_EVERY_S = 300.0


def replay_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A record of runs, or the name of one that ships.", show_default=False)
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what the judge would have said to recorded numbers, and when.

    Shipped: freetoken, omlx-3723, dflash-32 (three public reports). A record has one JSON object a line: first
    {"title": ...}, then {"at": SECONDS, "tok_s": RATE, "prompt_tokens": N, "worker": N} for each run.
    """
    head, runs = _read(_find(file))
    said = replay(runs, float(head.get("every_s", USUAL_EVERY_S)))
    lost = list(losses(runs, said))
    if as_json:
        print_json(_document(head, runs, said, lost))
        return
    say(str(head.get("title", file)))
    if note := head.get("note"):
        say(f"  {note}")
    say(f"  {len(runs)} runs of {len({run.worker for run in runs})} processes", "")
    say(*(_line(one) for one in said))
    say(*_conclusion(runs, said, lost))


def _find(file: str) -> Path:
    path = Path(file)
    if path.exists():
        return path
    shipped = {each.stem: each for each in sorted(SHIPPED.glob(f"*{SUFFIX}"))}
    if file in shipped:
        return shipped[file]
    raise UsageError(f"{file}: no such file, and none that ships; there are {', '.join(shipped)}")


def _read(path: Path) -> tuple[dict[str, Any], list[Recorded]]:
    head: dict[str, Any] = {}
    runs: list[Recorded] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = jsontext.decode(text)
        if line is None:
            raise UsageError(f"{path}:{number}: not a JSON object")
        if "tok_s" not in line:
            head |= line
            continue
        run = _run(line)
        if run is None or run.tok_s <= 0 or (runs and run.at < runs[-1].at):
            raise UsageError(f"{path}:{number}: wants at (seconds, rising), tok_s (above 0), prompt_tokens, worker")
        runs.append(run)
    if not runs:
        raise UsageError(f"{path}: no runs in it")
    return head, runs


def _run(line: dict[str, Any]) -> Recorded | None:
    try:
        return Recorded(
            float(line["at"]), float(line["tok_s"]), int(line.get("prompt_tokens", 256)), int(line.get("worker", 1))
        )
    except (KeyError, TypeError, ValueError):
        return None


def _line(said: Said) -> str:
    hours, minutes = divmod(round(said.age_s / 60), 60)
    return f"  {hours:2d} h {minutes:02d}  process {said.worker}  {said.verdict.status:9s} {said.verdict.reason}"


def _conclusion(runs: list[Recorded], said: list[Said], lost: list[Loss]) -> list[str]:
    if lost:
        return ["", *(_loss(one) for one in lost)]
    context = slow_from_the_start(runs)
    if context:
        small, fast, large, slow = context
        return [
            "",
            f"No recycle. {slow:.1f} tok/s at {large} prompt tokens beside {fast:.1f} at {small}, from the first run",
            "on: the context, not age. A new process would be no faster.",
        ]
    is_judged = any(one.verdict.status is not Status.UNKNOWN for one in said)
    return ["", "No recycle." if is_judged else "No verdict: too few fresh runs to know what fresh means."]


def _loss(lost: Loss) -> str:
    return (
        f"Recycled then, process {lost.worker} would have written up to {lost.kept:,.0f} tokens more in the "
        f"{lost.lasted_s / 3600:.1f} h that it went on: {lost.fresh:,.0f} instead of {lost.written:,.0f}."
    )


def _document(head: dict[str, Any], runs: list[Recorded], said: list[Said], lost: list[Loss]) -> dict[str, Any]:
    context = slow_from_the_start(runs)
    return {
        "title": head.get("title"),
        "runs": len(runs),
        "said": [
            {
                "at_s": one.at,
                "worker": one.worker,
                "age_s": one.age_s,
                "status": one.verdict.status.value,
                "ratio": one.verdict.ratio,
                "interval": one.verdict.interval,
                "confidence": one.verdict.confidence,
                "prompt_tokens": one.verdict.prompt_tokens,
                "reason": one.verdict.reason,
            }
            for one in said
        ],
        "lost": [{"worker": one.worker, "lasted_s": one.lasted_s, "tokens": one.kept} for one in lost],
        "context": None
        if context is None or lost
        else dict(zip(("small", "fast", "large", "slow"), context, strict=True)),
    }
