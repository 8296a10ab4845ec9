from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.acceptance import CAUTION, Acceptance, Shadows


def test_what_is_always_accepted_comes_to_be_expected():
    acceptance = Acceptance(7)
    for _ in range(60):
        acceptance.observe("copy", 7, 7)
    assert acceptance.expected("copy", 7)[7] > 7
    assert acceptance.expected("copy", 7, caution=CAUTION)[7] > 6


def test_what_lies_behind_a_rejection_is_not_held_against_it():
    acceptance = Acceptance(7)
    for _ in range(60):
        acceptance.observe("chat", 7, 1)
    two = acceptance.expected("chat", 7)
    assert 1.9 < two[1] < 2.0
    assert two[7] < 2.2


def test_one_kind_of_draft_says_nothing_about_another():
    acceptance = Acceptance(3)
    for _ in range(60):
        acceptance.observe("long", 3, 3)
    assert acceptance.expected("short", 3) == Acceptance(3).expected("short", 3)


def test_after_new_content_began_a_few_rejections_outweigh_old_success():
    faded, kept = Acceptance(1), Acceptance(1)
    for acceptance in (faded, kept):
        for _ in range(60):
            acceptance.observe("copy", 1, 1)
    faded.fade()
    for acceptance in (faded, kept):
        for _ in range(8):
            acceptance.observe("copy", 1, 0)
    assert faded.expected("copy", 1)[1] < 1.6 < kept.expected("copy", 1)[1]


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=60))
def test_expectations_grow_with_the_draft_and_caution_only_lowers_them(observed):
    acceptance = Acceptance(15)
    for drafted, accepted in observed:
        acceptance.observe("any", drafted, min(drafted, accepted))
    expected, cautious = acceptance.expected("any", 15), acceptance.expected("any", 15, caution=CAUTION)
    assert expected == sorted(expected)
    assert all(1 <= low <= mean <= k + 1 for k, (low, mean) in enumerate(zip(cautious, expected, strict=True)))


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_a_shadow_scores_as_verification_would_have(text, draft):
    by_shadow, by_cycle = Acceptance(6), Acceptance(6)
    shadows = Shadows(by_shadow)
    shadows.start("any", tuple(draft))
    shadows.arrive(text)
    shadows.end()
    matched = next((i for i, (a, b) in enumerate(zip(draft, text, strict=False)) if a != b), min(len(draft), len(text)))
    by_cycle.observe("any", min(len(draft), len(text)), matched)
    assert by_shadow.expected("any", 6) == by_cycle.expected("any", 6)
