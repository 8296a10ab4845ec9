"""Who makes room for whom."""

from __future__ import annotations

from supervisor.shell.neighbours import Neighbour, Neighbours


def neighbours(**spare: float | None) -> tuple[Neighbours, list[tuple[str, str]]]:
    asked: list[tuple[str, str]] = []
    all_of_them = Neighbours()
    for name, seconds in spare.items():
        make_room = lambda by, lane=name: asked.append((lane, by))  # noqa: E731
        all_of_them.join(name, Neighbour(lambda seconds=seconds: seconds, make_room))
    return all_of_them, asked


def test_the_longest_idle_is_asked_and_never_the_one_who_asks() -> None:
    lanes, asked = neighbours(small=10.0, old=300.0, big=9000.0, busy=None)
    lanes.ask_for_room("big")
    assert asked == [("old", "big")]


def test_where_nobody_can_do_without_its_worker_nobody_is_asked() -> None:
    lanes, asked = neighbours(busy=None, big=5.0)
    lanes.ask_for_room("big")
    assert asked == []
