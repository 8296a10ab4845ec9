"""Values from outside the file: ``${env:NAME}``, ``${env:NAME:-default}`` and ``${file:PATH}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_REFERENCE = re.compile(r"\$\{(env|file):([^{}]*)\}")
_OPENING = re.compile(r"\$\{(?:env|file):")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LARGEST_VALUE = 64 * 1024


class InterpolationError(ValueError):
    """A reference that leads nowhere; the text names it and never what it holds."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Where references lead: an environment, and the folder that relative paths count from."""

    environment: Mapping[str, str]
    folder: Path

    def fill_in(self, text: str) -> str:
        """``text`` with every reference replaced, once. Raises InterpolationError."""
        if len(_OPENING.findall(text)) != len(_REFERENCE.findall(text)):
            raise InterpolationError(
                "has an unfinished ${...}; write ${env:NAME}, ${env:NAME:-default} or ${file:PATH}"
            )
        return _REFERENCE.sub(lambda found: self._value(found[1], found[2]), text)

    def _value(self, kind: str, rest: str) -> str:
        return self._from_environment(rest) if kind == "env" else self._from_file(rest)

    def _from_environment(self, rest: str) -> str:
        name, has_default, default = rest.partition(":-")
        if not _NAME.fullmatch(name):
            raise InterpolationError("names no environment variable; write ${env:NAME} or ${env:NAME:-default}")
        value = self.environment.get(name)
        if value or (value is not None and not has_default):
            return _clean(value, f"environment variable {name}")
        if not has_default:
            raise InterpolationError(
                f"environment variable {name} is not set; set it or write ${{env:{name}:-default}}"
            )
        return default

    def _from_file(self, rest: str) -> str:
        if not rest or "\0" in rest:
            raise InterpolationError("names no file; write ${file:PATH}")
        try:
            path = self.folder / Path(rest).expanduser()
            # Only a regular file: reading a pipe could wait for ever.
            if not path.is_file():
                raise InterpolationError(f"file {rest} does not exist")
            with path.open("rb") as source:
                content = source.read(LARGEST_VALUE + 1)
            if len(content) > LARGEST_VALUE:
                raise InterpolationError(f"file {rest} is larger than 64 KiB")
            return _clean(content.decode("utf-8").rstrip("\r\n"), f"file {rest}")
        except UnicodeDecodeError:
            raise InterpolationError(f"file {rest} is not UTF-8 text") from None
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "no such home folder"
            raise InterpolationError(f"file {rest} cannot be read: {reason}") from None


def _clean(value: str, source: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InterpolationError(f"{source} is not UTF-8 text")
    return value
