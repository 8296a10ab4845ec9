"""The radix tree finds what comparing with every key finds, and looks at each token of a prompt a few times at most."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.radix import RadixTree, common

keys = st.lists(st.integers(0, 2), max_size=8).map(tuple)
changes = st.lists(st.tuples(st.sampled_from(["add", "add", "remove"]), keys, st.integers(0, 3)), max_size=30)


class Naive:
    """A list of pairs, searched through."""

    def __init__(self) -> None:
        self.pairs: list[tuple[tuple[int, ...], int]] = []

    def longest(self, tokens):
        return max((common(key, tokens) for key, _ in self.pairs), default=0)

    def beginnings(self, tokens):
        return sorted((len(key), holder) for key, holder in self.pairs if key and tokens[: len(key)] == key)


@given(changes, keys)
def test_it_finds_what_comparing_with_every_key_finds(history, tokens):
    tree, naive = RadixTree(), Naive()
    for what, key, holder in history:
        if what == "add":
            tree.add(key, holder)
            naive.pairs = [pair for pair in naive.pairs if pair != (key, holder)] + [(key, holder)]
        elif (key, holder) in naive.pairs:
            tree.remove(key, holder)
            naive.pairs.remove((key, holder))
        else:
            with pytest.raises(KeyError):
                tree.remove(key, holder)
    length, holder = tree.longest(tokens)
    assert length == naive.longest(tokens)
    assert holder is None or any(common(key, tokens) == length for key, one in naive.pairs if one == holder)
    assert (holder is None) == (length == 0)
    assert sorted(tree.beginnings(tokens)) == naive.beginnings(tokens)
    length, holder = tree.deepest(tokens)
    assert length == max((length for length, _ in naive.beginnings(tokens)), default=0)
    if length:
        assert holder == [one for key, one in naive.pairs if key == tokens[:length]][-1]


@given(st.lists(st.tuples(keys, st.integers(0, 3)), unique=True, max_size=20))
def test_nothing_is_left_of_what_was_removed(pairs):
    tree = RadixTree()
    for key, holder in pairs:
        tree.add(key, holder)
    for key, holder in pairs:
        tree.remove(key, holder)
    assert not tree._root.children


@pytest.mark.parametrize("shared", [0, 10, 2_047, 2_048])
def test_a_lookup_compares_each_token_a_few_times_at_most(shared):
    class Counted(int):
        compared = 0
        __hash__ = int.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return int(self) == int(other)

    tree, length = RadixTree(), 2_048
    for seed in range(9):  # all of them begin alike
        tree.add((*range(length // 2), *(token + seed for token in range(length // 2, length))), seed)
    prompt = [Counted(token if place < shared else -1) for place, token in enumerate(range(length))]
    tree.longest(tuple(prompt))
    assert Counted.compared <= 3 * length
