from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.drafters.ngram import LONGEST, SHORTEST, NgramDrafter


def drafter_after(tokens: list[int], chunk: int = 0) -> NgramDrafter:
    drafter = NgramDrafter()
    drafter.begin(tokens[:chunk])
    drafter.extend(tokens[chunk:])
    return drafter


def test_it_proposes_what_followed_the_longest_earlier_match():
    text = [1, 2, 3, 4, 9, 2, 3, 5, 9, 1, 2, 3]
    draft = drafter_after(text).propose(3)
    assert draft.tokens == (4, 9, 2)
    assert draft.kind == "ngram3"


def test_the_newest_of_equally_long_matches_wins():
    assert drafter_after([7, 8, 1, 7, 8, 2, 7, 8]).propose(1).tokens == (2,)


def test_a_repetition_is_continued_beyond_the_end_of_the_text():
    assert drafter_after([5, 6, 7, 5, 6, 7, 5]).propose(8).tokens == (6, 7, 5, 6, 7, 5, 6, 7)


def test_new_text_gives_no_draft():
    assert drafter_after([1, 2, 3, 4, 5]).propose(8).tokens == ()
    assert drafter_after([]).propose(8).tokens == ()
    assert drafter_after([1, 1, 1, 1]).propose(0).tokens == ()


def test_a_new_sequence_forgets_the_old_one():
    drafter = drafter_after([1, 2, 3, 1, 2])
    assert drafter.propose(1).tokens == (3,)
    drafter.begin([4, 1, 2])
    assert drafter.propose(1).tokens == ()


@given(st.lists(st.integers(0, 3), max_size=80), st.integers(0, 80), st.integers(1, 16))
def test_a_draft_always_follows_a_real_repetition_of_the_length_it_claims(tokens, chunk, limit):
    draft = drafter_after(tokens, chunk).propose(limit)
    if not draft.tokens:
        seen = list(itertools.pairwise(tokens))
        assert seen[-1:] == [] or seen[-1] not in seen[:-1] or seen.index(seen[-1]) == 0
        return
    assert len(draft.tokens) == limit
    claimed = max(SHORTEST, int(draft.kind.removeprefix("ngram")))
    suffix = tokens[-claimed:]
    starts = [i for i in range(len(tokens) - claimed) if tokens[i : i + claimed] == suffix]
    assert any(tokens[i + claimed] == draft.tokens[0] for i in starts)
    assert claimed <= LONGEST
