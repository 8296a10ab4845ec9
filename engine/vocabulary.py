"""The bytes that each token stands for, as llguidance knows them: for grammars and for log-probabilities.

Built when it is first asked for (half a second for 49k tokens), for most requests need neither.
"""

from __future__ import annotations

import copy
from functools import cached_property
from threading import Lock
from typing import Any

from llguidance import LLTokenizer

from engine.errors import RequestError


class Vocabulary:
    """One model's tokens. May be used from any thread."""

    def __init__(self, tokenizer: Any, size: int, eos_ids: frozenset[int]) -> None:
        """`tokenizer` is a fast one of Hugging Face's, which may be wrapped; `size` is that of the model's logits."""
        self._tokenizer = tokenizer
        self.size = size
        self._eos_ids = eos_ids
        self._building = Lock()

    @property
    def tokens(self) -> LLTokenizer:
        """Raises RequestError for a tokenizer that llguidance cannot read."""
        with self._building:
            return self._built

    @cached_property
    def _built(self) -> LLTokenizer:
        try:
            backend = self._tokenizer.backend_tokenizer
            if backend.padding or backend.truncation:
                backend = copy.deepcopy(backend)
                backend.no_padding()
                backend.no_truncation()
            return LLTokenizer(backend.to_str(), n_vocab=self.size, eos_token=sorted(self._eos_ids))
        except (AttributeError, ValueError) as error:
            raise RequestError(
                f"this model's tokenizer gives neither grammars nor log probabilities ({error}); leave out "
                "response_format, logprobs and a tool_choice that forces a call"
            ) from error

    def bytes_of(self, token: int) -> bytes:
        """What a token adds to the text; a character may be spread over several."""
        return self.tokens.decode_bytes([token])

    def is_special(self, token: int) -> bool:
        """Whether a grammar can only name it as a token, not write it as text."""
        return self.tokens.is_special_token(token)
