"""What keeps secrets out of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

SECRET_NAME = re.compile(r"(?i)(authorization|api[-_]?keys?|admin[-_]?keys?|token|password|secret|cookie)$")
SECRET_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}")
HIDDEN = "***"
SHORTEST_SECRET = 4


class Redactor:
    """Hides values under telling names, credentials in running text, and known secrets wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """Know these secrets too; the longest is looked for first."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def __call__(self, _logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {name: self._clean(name, value) for name, value in event.items()}

    def _clean(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return HIDDEN if SECRET_NAME.search(name) else self._without_secrets(value)
        if isinstance(value, Mapping):
            return {key: self._clean(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self._clean(name, item) for item in value]
        return value if isinstance(value, (int, float, type(None))) else self._without_secrets(str(value))

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return SECRET_TEXT.sub(rf"\1 {HIDDEN}", text)
