"""Takes out of a text what tells whose machine this is. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from supervisor.logs.redactor import HIDDEN, SECRET_NAME, SECRET_TEXT

ADDRESS = re.compile(r"\b(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}\b")
MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
HOST_IN_URL = re.compile(r"(?<=://)(?!127\.0\.0\.1|localhost|\[::1\])(?:[^\s/@]*@)?[^\s/:\"']+")
HOME = re.compile(r"(?:/Users|/home)/[^/\s\"':]+")
SECRET_FLAG = re.compile(r"(?i)--?[\w-]*(?:key|token|password|secret)")
SECRET_IN_FLAG = re.compile(r"(?i)(--?[\w-]*(?:key|token|password|secret)[= ])\S+")
PRIVATE = frozenset(
    {"headers", "env", "api_keys", "admin_keys", "reason", "webhook", "allowed_hosts", "allowed_origins"}
)
"""Keys whose values are nobody's business: secrets, or a person's own words."""
SHORTEST_NAME = 3


class Anonymous:
    """``own``: texts that name this machine or its user, each with what stands in its place."""

    def __init__(self, own: Mapping[str, str], secrets: Iterable[str] = ()) -> None:
        known = {text: name for text, name in own.items() if len(text) >= SHORTEST_NAME} | dict.fromkeys(
            secrets, HIDDEN
        )
        self._own = sorted(((text, name) for text, name in known.items() if text), key=lambda pair: -len(pair[0]))

    def document(self, value: Any, key: str = "") -> Any:
        """A copy of a JSON value without them."""
        if key in PRIVATE or SECRET_NAME.search(key):
            return HIDDEN if value else value
        if isinstance(value, Mapping):
            return {self.text(str(name)): self.document(item, str(name)) for name, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._word(value, at) for at in range(len(value))]
        return value if isinstance(value, (int, float, type(None))) else self.text(str(value))

    def _word(self, words: Sequence[Any], at: int) -> Any:
        """An item of a list; of a command line, what stands behind `--api-key` is hidden."""
        is_secret = at > 0 and isinstance(words[at - 1], str) and SECRET_FLAG.fullmatch(words[at - 1])
        return HIDDEN if is_secret else self.document(words[at])

    def text(self, text: str) -> str:
        """A copy of a text without them."""
        for own, name in self._own:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(own)}(?![A-Za-z0-9])", name, text)
        text = SECRET_IN_FLAG.sub(rf"\1{HIDDEN}", SECRET_TEXT.sub(rf"\1 {HIDDEN}", text))
        text = HOME.sub("~", text)
        return ADDRESS.sub("<address>", MAIL.sub("<mail>", HOST_IN_URL.sub("<host>", text)))
