"""Which of many token sequences begins like a given one: a radix tree. Pure; time linear in the sequence looked up."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = tuple[int, ...]
Holder = TypeVar("Holder", bound=Hashable)


@dataclass(eq=False)
class _Node(Generic[Holder]):
    """`edge` leads here from the parent; `holders` are in the order in which they came."""

    edge: Key
    children: dict[int, _Node[Holder]] = field(default_factory=dict)
    holders: dict[Holder, None] = field(default_factory=dict)


class RadixTree(Generic[Holder]):
    """Keys of token ids, each held by one or more holders."""

    def __init__(self) -> None:
        self._root: _Node[Holder] = _Node(())

    def add(self, key: Key, holder: Holder) -> None:
        """Let `holder` hold `key`; it then is the newest there."""
        node, at = self._root, 0
        while at < len(key):
            child = node.children.pop(key[at], None)
            if child is None:
                child = _Node(key[at:])
            elif (shared := common(child.edge, key, at)) < len(child.edge):
                child = _split(child, shared)
            node.children[key[at]] = child  # popped and put back: the newest comes last
            node, at = child, at + len(child.edge)
        node.holders.pop(holder, None)
        node.holders[holder] = None

    def remove(self, key: Key, holder: Holder) -> None:
        """Undo `add`. Raises KeyError where `holder` does not hold `key`."""
        path, at = [self._root], 0
        while at < len(key):
            child = path[-1].children.get(key[at])
            if child is None or common(child.edge, key, at) < len(child.edge):
                raise KeyError(key)
            path.append(child)
            at += len(child.edge)
        del path[-1].holders[holder]
        _prune(path)

    def longest(self, tokens: Key) -> tuple[int, Holder | None]:
        """How much of `tokens` is the beginning of a key, and who holds such a key: if one ends there, that one."""
        length, node = 0, self._root
        for end, node in self._path(tokens):  # noqa: B007 - the last of them
            length = end
        if not length:
            return 0, None
        while not node.holders:
            node = next(reversed(node.children.values()))
        return length, next(reversed(node.holders))

    def deepest(self, tokens: Key) -> tuple[int, Holder | None]:
        """The longest key that is a beginning of `tokens`: its length, and its newest holder."""
        found: tuple[int, Holder | None] = (0, None)
        at = 0
        for end, node in self._path(tokens):
            at += len(node.edge)
            if node.holders and end == at:
                found = at, next(reversed(node.holders))
        return found

    def beginnings(self, tokens: Key) -> Iterator[tuple[int, Holder]]:
        """All keys that are beginnings of `tokens`, the shortest first: their lengths and holders."""
        at = 0
        for end, node in list(self._path(tokens)):
            at += len(node.edge)
            if end == at:
                yield from ((at, holder) for holder in list(node.holders))

    def _path(self, tokens: Key) -> Iterator[tuple[int, _Node[Holder]]]:
        """Nodes on the way along `tokens`, each with how much of `tokens` is shared with the way to it."""
        node, at = self._root, 0
        while at < len(tokens) and (child := node.children.get(tokens[at])) is not None:
            shared = common(child.edge, tokens, at)
            yield at + shared, child
            if shared < len(child.edge):
                return
            node, at = child, at + shared


def common(edge: Key, tokens: Key, start: int = 0) -> int:
    """How much of `edge` is at `start` of `tokens`; by halves, for slices compare at C speed, linear all the same."""
    low, high = 0, min(len(edge), len(tokens) - start)
    while low < high:
        middle = (low + high + 1) // 2
        if edge[low:middle] == tokens[start + low : start + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _split(node: _Node[Holder], length: int) -> _Node[Holder]:
    """A new node after the first `length` tokens of the edge to `node`."""
    above: _Node[Holder] = _Node(node.edge[:length])
    node.edge = node.edge[length:]
    above.children[node.edge[0]] = node
    return above


def _prune(path: list[_Node[Holder]]) -> None:
    """Take away the last node if it serves nothing any more, and join what then need not be apart."""
    node = path.pop()
    if not path:
        return
    parent = path[-1]
    if not node.holders and not node.children:
        del parent.children[node.edge[0]]
        if len(path) > 1 and not parent.holders and len(parent.children) == 1:
            _join(path[-2], parent)
    elif not node.holders and len(node.children) == 1:
        _join(parent, node)


def _join(parent: _Node[Holder], node: _Node[Holder]) -> None:
    """Put the only child of `node` in its place."""
    [child] = node.children.values()
    child.edge = node.edge + child.edge
    parent.children[child.edge[0]] = child
