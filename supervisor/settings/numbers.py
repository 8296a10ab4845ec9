"""The kinds of numbers in lanes.yaml, each with how it is read, refused, described and written back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from supervisor.settings import units
from supervisor.settings.block import is_from_file

_FILLED_IN = r".*\$\{(env|file):.*"
"""In the schema a value may also be filled in from outside; it is checked when the file is loaded."""


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
