"""Answers that follow a grammar: which tokens may come next. llguidance does the work; no MLX here.

A grammar is compiled once a request, off the decode thread. Each answer then has a matcher of its own, which follows
the tokens that were decoded and gives a mask over the vocabulary for each row of logits. So a draft that breaks the
grammar is never kept: the row before it cannot choose it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from llguidance import LLMatcher
from numpy.typing import NDArray

from engine.errors import FieldError
from engine.vocabulary import Vocabulary

WHITESPACE = r"[ ]|\n[ \t]{0,40}"
"""Between two parts of JSON: a model that is free to write any amount of it may never stop."""
Mask = NDArray[np.bool_]


class Grammar:
    """A compiled grammar, which many answers may follow.

    `after`: the tokens that end the model's reasoning; until they came, everything is allowed.
    """

    def __init__(self, text: str, vocabulary: Vocabulary, after: tuple[int, ...], field: str) -> None:
        """`text` is a grammar of llguidance's that the request's `field` wants.

        Raises FieldError where it is none, or cannot be written at all.
        """
        self.vocabulary = vocabulary
        self.after = after
        self._compiled = LLMatcher(vocabulary.tokens, text, log_level=0)
        if not self._compiled.is_error():
            probe = self._compiled.deep_copy()
            probe.compute_bitmask()
            if not probe.is_error():
                return
            raise FieldError(field, "this model's vocabulary cannot write such an answer; leave it out")
        raise FieldError(field, problem_of(self._compiled.get_error()))

    def begin(self) -> LLMatcher:
        """A matcher at the start of an answer."""
        return self._compiled.deep_copy()


class Matcher:
    """Follows one answer. Positions are those of the whole sequence, prompt included."""

    def __init__(self, grammar: Grammar, tokens: Sequence[int], begun: int = 0) -> None:
        """The answer begins with the last `begun` of `tokens`."""
        self._grammar = grammar
        self._matcher = grammar.begin()
        self._awaited = grammar.after
        self._passed: tuple[int, ...] = ()
        self._consumed: list[int] = []
        self._drafted: list[int] = []
        self._at = len(tokens) - begun
        self.fault = ""
        """Why no mask can be given any more; a parser has limits."""
        self.follow(tokens)

    def follow(self, tokens: Sequence[int]) -> None:
        """The whole sequence is `tokens` by now."""
        for token in tokens[self._at :]:
            self._take(token)
        self._at = len(tokens)
        self._drafted = []

    def permitted(self, draft: Sequence[int]) -> int:
        """How many tokens of a draft after what was followed may come."""
        if self._awaited:
            return len(draft)
        return self._matcher.validate_tokens(list(draft))

    def masks(self, inputs: Sequence[int], position: int) -> Mask:
        """What may follow each of `inputs`: [n, vocabulary].

        The first of `inputs` precedes `position`, and others are drafts; of those of the call before, the ones up to
        it were right. Rows after a draft that is not allowed forbid nothing, for nobody will read them.
        """
        self._catch_up(inputs[0], position)
        rows = np.ones((len(inputs), self._grammar.vocabulary.size), np.bool_)
        rows[0] = self._mask()
        self.fault = self._matcher.get_error() if self._matcher.is_error() else ""
        self._drafted = list(inputs[1:])
        awaited, passed, consumed = self._awaited, self._passed, len(self._consumed)
        for row, draft in enumerate(self._drafted, 1):
            if not rows[row - 1, draft] or not self._take(draft):
                break
            rows[row] = self._mask()
            if self._matcher.is_error():  # a blind alley
                rows[row - 1, draft] = False
                break
        self._awaited, self._passed = awaited, passed
        self._give_back(consumed)
        return rows

    def _catch_up(self, last: int, position: int) -> None:
        behind = position - self._at
        if behind > 0:
            for token in (*self._drafted[: behind - 1], last):
                self._take(token)
            self._at = position

    def _take(self, token: int) -> bool:
        if self._awaited:
            self._passed = (*self._passed, token)[-len(self._awaited) :]
            if self._passed == self._awaited:
                self._awaited = ()
            return True
        # What is decoded ahead of a stop token that has not been read yet is no concern of the grammar's.
        if not self._matcher.try_consume_tokens([token]):
            return False
        self._consumed.append(token)
        return True

    def _give_back(self, length: int) -> None:
        """Be again where `length` tokens were consumed."""
        extra = len(self._consumed) - length
        del self._consumed[length:]
        if self._matcher.is_error() and not self.fault:
            self._matcher = self._grammar.begin()  # an error stays
            self._matcher.consume_tokens(self._consumed)
        elif extra:
            self._matcher.rollback(extra)

    def _mask(self) -> Mask | bool:
        if self._awaited:
            return True
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        mask: Mask = np.zeros(self._grammar.vocabulary.size, np.bool_)
        known = np.unpackbits(bits, bitorder="little")[: mask.size]
        mask[: known.size] = known
        return mask


def schema_grammar(schema: Any) -> str:
    """The grammar of JSON texts that a schema allows."""
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), {"whitespace_pattern": WHITESPACE})


def schema_problem(schema: Any) -> str:
    """What is wrong with a JSON schema; empty if nothing is."""
    try:
        return problem_of(LLMatcher.validate_grammar(schema_grammar(schema)))
    except (TypeError, ValueError) as error:
        return str(error)


def problem_of(message: str) -> str:
    """The first line of an error of llguidance's, which goes on with its own state; empty for a warning or nothing."""
    lines = message.strip().splitlines()
    return "" if not lines or lines[0].startswith("WARNING") else lines[0]
