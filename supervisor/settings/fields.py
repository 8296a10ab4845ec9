"""The kinds of values in lanes.yaml, each with how it is read, refused, described and written back.

A value from a file must be written as the file's rules say (``90s``, never ``90``). From Python code a plain number
is taken as it is: seconds, bytes, a count or a share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from supervisor.settings import units

FILE_FOLDER = "file_folder"
"""The key of the validation context that says: this is from a file, in that folder."""

_FILLED_IN = r".*\$\{(env|file):.*"
"""In the schema a value may also be filled in from outside; it is checked when the file is loaded."""


class Block(BaseModel):
    """A frozen piece of lanes.yaml; a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=())


def key(default: object, meaning: str, *, shown: bool = True) -> Any:
    """A key with its default, written as in the file, and its meaning. ``shown`` False keeps it out of every repr."""
    return Field(default=default, validate_default=True, description=meaning, repr=shown)


@dataclass(frozen=True, slots=True)
class Unit:
    """Reads and writes one kind of number."""

    kind: str
    parse: Callable[[str], float | int]
    show_number: Callable[[Any], str]
    pattern: str
    takes_bare_numbers: bool
    least: float | int | None = None
    above: float | int | None = 0
    word: str | None = None
    """The word that stands for None: ``auto`` or ``off``."""
    may_be_null: bool = False

    def show(self, value: float | int | None) -> str:
        """``value`` as one would write it in the file."""
        return (self.word or "null") if value is None else self.show_number(value)

    def read(self, value: object, info: ValidationInfo) -> float | int | None:
        """The number in ``value``. Raises ValueError with the remedy."""
        is_file = is_from_file(info)
        if value is None and (self.may_be_null or not is_file):
            return None
        if isinstance(value, str) and value == self.word:
            return None
        return self._checked(self._number(value, is_file))

    def _number(self, value: object, is_file: bool) -> float | int:
        if isinstance(value, str):
            try:
                return self.parse(str(value))
            except units.UnitError as error:
                raise units.UnitError(f"{error}{self._or_word()}") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must be {self.kind}{self._or_word()}")  # noqa: TRY004  # pydantic collects ValueErrors
        if is_file:
            return self.parse(_as_written(value))
        return value

    def _checked(self, number: float | int) -> float | int:
        if self.above is not None and number <= self.above:
            raise ValueError(f"must be more than {self.show_number(self.above)}")
        if self.least is not None and number < self.least:
            raise ValueError(f"must be at least {self.show_number(self.least)}")
        return number

    def _or_word(self) -> str:
        words = [self.word] if self.word else ["null"] if self.may_be_null else []
        return "".join(f", or {word}" for word in words)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        words = f"|{self.word}" if self.word else ""
        choices: list[dict[str, Any]] = [
            {"type": "string", "pattern": f"^(?:{self.pattern}{words}|{_FILLED_IN})$"},
        ]
        if self.takes_bare_numbers:
            choices.append({"type": "number", "minimum": 0})
        if self.may_be_null:
            choices.append({"type": "null"})
        return choices[0] if len(choices) == 1 else {"anyOf": choices}


def is_from_file(info: ValidationInfo) -> bool:
    """Whether the value was written in a file, so that the file's rules hold."""
    return info.context is not None and FILE_FOLDER in info.context


def _as_written(value: float) -> str:
    return f"{value:f}".rstrip("0").rstrip(".") if isinstance(value, float) and "e" in repr(value) else repr(value)


_DURATION = Unit("a duration", units.parse_duration, units.format_duration, units.DURATION_PATTERN, False)
_SIZE = Unit("a size", units.parse_size, units.format_size, units.SIZE_PATTERN, False)
_COUNT = Unit("a whole number", units.parse_count, units.format_count, units.COUNT_PATTERN, True)
_SHARE = Unit("a share", units.parse_share, units.format_share, units.SHARE_PATTERN, True)
_RATIO = Unit("a ratio", units.parse_ratio, units.format_ratio, units.NUMBER_PATTERN, True)

Duration = Annotated[float, _DURATION]
"""Seconds, more than 0."""
DurationOrZero = Annotated[float, replace(_DURATION, above=None)]
DurationOrAuto = Annotated[float | None, replace(_DURATION, word="auto")]
"""None: auto."""
DurationOrOff = Annotated[float | None, replace(_DURATION, word="off", may_be_null=True)]
"""None: off."""
DurationOrNull = Annotated[float | None, replace(_DURATION, may_be_null=True)]
Size = Annotated[int, _SIZE]
"""Bytes, more than 0."""
SizeOrZero = Annotated[int, replace(_SIZE, above=None)]
SizeOrAuto = Annotated[int | None, replace(_SIZE, word="auto")]
"""None: auto."""
SizeOrZeroOrAuto = Annotated[int | None, replace(_SIZE, above=None, word="auto")]
SizeOrNull = Annotated[int | None, replace(_SIZE, may_be_null=True)]
Count = Annotated[int, _COUNT]
CountOrZero = Annotated[int, replace(_COUNT, above=None)]
CountOrNull = Annotated[int | None, replace(_COUNT, may_be_null=True)]
TokenCount = Annotated[int, replace(_COUNT, above=None, least=2)]
"""At least 2: a rate needs a token after the first."""
Share = Annotated[float, _SHARE]
Ratio = Annotated[float, _RATIO]


def _port(value: int | None) -> int | None:
    if value is not None and value > 65535:
        raise ValueError("must be a port from 1 to 65535")
    return value


Port = Annotated[int | None, replace(_COUNT, may_be_null=True), AfterValidator(_port)]


def _plain_word(value: object) -> object:
    return str(value) if isinstance(value, str) else value


Word = TypeVar("Word")
Choice = Annotated[Word, BeforeValidator(_plain_word)]
"""One of a few words. A bare ``off`` is one, though YAML 1.1 would read false."""


def _text(value: object, info: ValidationInfo) -> object:
    if value is None and is_from_file(info):
        raise ValueError("is empty; give it a value or remove the key")
    if isinstance(value, Path):
        return str(value)
    if type(value) is not str:
        raise ValueError(_not_text(value))
    if not value.strip():
        raise ValueError("is empty; give it a value or remove the key")
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise ValueError("holds a control character (a line break, a tab or the like)")
    return value


def _text_or_null(value: object, info: ValidationInfo) -> object:
    return None if value is None else _text(value, info)


def _not_text(value: object) -> str:
    if isinstance(value, dict) and len(value) == 1 and list(value.values()) == [None]:
        name = next(iter(value))
        return f'must be text; YAML takes bare braces for a block, so write "{{{name}}}" in quotes'
    return "must be text; write it in quotes" if isinstance(value, str | int | float | bool) else "must be text"


def _text_value(value: object) -> object:
    """Like text, but it may be empty and may hold line breaks: values of the environment."""
    if type(value) is not str:
        raise ValueError(_not_text(value))
    if "\0" in value:
        raise ValueError("holds a zero character")
    return value


Text = Annotated[str, BeforeValidator(_text)]
TextOrNull = Annotated[str | None, BeforeValidator(_text_or_null)]
EnvironmentText = Annotated[str, BeforeValidator(_text_value)]


def _located(value: object, info: ValidationInfo) -> object:
    """``~`` is the home folder; a relative path counts from the file's folder."""
    text = _text_or_null(value, info)
    if text is None:
        return None
    try:
        path = Path(str(text)).expanduser()
    except RuntimeError:
        raise ValueError("names a home folder that does not exist") from None
    return info.context[FILE_FOLDER] / path if info.context and is_from_file(info) else path


_PATH_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1})

Location = Annotated[Path, BeforeValidator(_located), _PATH_SCHEMA]
LocationOrNull = Annotated[
    Path | None,
    BeforeValidator(_located),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]}),
]


def _model(value: object, info: ValidationInfo) -> object:
    """A hub id or a built-in name stays as it is; what looks like a folder is located."""
    text = _text_or_null(value, info)
    looks_like_folder = isinstance(text, str) and (text.startswith(("/", "./", "../", "~")) or text in {".", ".."})
    return str(_located(text, info)) if looks_like_folder else text


Model = Annotated[str | None, BeforeValidator(_model)]


def _secret(value: object, info: ValidationInfo) -> object:
    return value if isinstance(value, SecretStr) else _text(value, info)


Secret = Annotated[SecretStr, BeforeValidator(_secret), WithJsonSchema({"type": "string", "minLength": 1})]
"""Never printed: its repr is stars."""


def _url_path(value: object, info: ValidationInfo) -> object:
    text = _text(value, info)
    if isinstance(text, str) and not re.fullmatch(r"/[!-~]*", text):
        raise ValueError("is no path; write one such as /health")
    return text


UrlPath = Annotated[str, BeforeValidator(_url_path)]


def _header_name(value: object, info: ValidationInfo) -> object:
    text = _text(value, info)
    if isinstance(text, str) and not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", text):
        raise ValueError("is no name of a header")
    return text


HeaderName = Annotated[str, BeforeValidator(_header_name)]


def _client_name(value: object, info: ValidationInfo) -> object:
    text = _text(value, info)
    if isinstance(text, str) and (any(letter.isspace() for letter in text) or len(text) > 200):
        raise ValueError("must be one word of at most 200 letters; clients send it as `model`")
    return text


ClientName = Annotated[str, BeforeValidator(_client_name)]
"""A name that clients send as `model`."""
