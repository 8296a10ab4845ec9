"""What fresh means, in words."""

from __future__ import annotations

from rich.console import Console

from supervisor.cli.render.baselines import baseline_lines

BIMODAL = {
    "decode_tok_s": 33.0,
    "by_prompt_tokens": {"256": 33.0, "3072": 30.0},
    "spawns": 3,
    "runs": 24,
    "quality": "full",
    "modes": [33.0, 26.0],
    "spawn_tok_s": [33.1, 25.9, 32.9],
    "prefill": {"tok_s": 500.0, "by_prompt_tokens": {"256": 500.0}, "spawns": 1, "runs": 5, "quality": "provisional"},
    "changed": {"time": "2026-03-01T14:05:00+00:00", "parts": ["command", "version of mlx"]},
}


def said(**baselines: object) -> str:
    return "\n".join(line.plain for line in baseline_lines(baselines, None, Console()))


def test_modes_spawns_reading_and_what_was_changed_are_told() -> None:
    words = said(chat=BIMODAL)
    assert "33.0 tok/s after 256 tokens, 30.0 after 3072; from 3 spawns and 24 runs; full" in words
    assert "each spawn: 33.1, 25.9, 32.9 tok/s" in words
    assert "spawns come up at 33.0 or 26.0 tok/s" in words
    assert "reads prompts at 500 tok/s after 256 tokens" in words
    assert "was dropped: changed was command, version of mlx" in words


def test_a_provisional_one_says_what_it_is_good_for_and_an_unknown_one_says_so() -> None:
    words = said(chat={"decode_tok_s": 60.0, "spawns": 1, "runs": 5, "quality": "provisional"}, new=None)
    assert "provisional: only a worker far too slow is convicted" in words
    assert "new   not known yet" in words


def test_it_is_told_at_which_age_workers_are_replaced_and_which_one_is_left_alone() -> None:
    learned = {"lives": 5, "best_age_s": 11_400.0, "is_left_alone": False}
    assert "in 5 lives, replacing a worker at the age of 3 h 10 min has paid best" in said(
        chat=BIMODAL | {"ageing": learned}
    )
    alone = {"lives": 10, "best_age_s": None, "is_left_alone": True}
    assert "this worker is left alone, to see what becomes of old ones" in said(chat=BIMODAL | {"ageing": alone})
    few = {"lives": 1, "best_age_s": None, "is_left_alone": False}
    assert "seen to age in 1 life; no age is known yet" in said(chat=BIMODAL | {"ageing": few})
    none = {"lives": 0, "best_age_s": None, "is_left_alone": False}
    assert "age" not in said(chat=BIMODAL | {"ageing": none})
