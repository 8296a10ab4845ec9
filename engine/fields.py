"""Read the fields of a JSON body one by one, with errors that name the field. Pure."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from engine.errors import FieldError, RequestError


def parse_object(body: bytes) -> Fields:
    """The fields of a JSON object. Raises RequestError for anything else, and for NaN and infinities."""
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the body is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RequestError("the body must be a JSON object")
    return Fields(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


class Fields:
    """A JSON object, read with its types checked. A field that is absent or null has its default."""

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self.values = values
        self._prefix = prefix

    def raw(self, name: str) -> Any:
        """The value as it came; None where it is absent."""
        return self.values.get(name)

    def fail(self, name: str, problem: str) -> NoReturn:
        """Raise FieldError about `name`."""
        raise FieldError(self._prefix + name, problem)

    def number(self, name: str, default: float, lowest: float, highest: float) -> float:
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(name, "must be a number")
        if not lowest <= value <= highest or not math.isfinite(value):
            self.fail(name, f"must be between {lowest:g} and {highest:g}, got {value:g}")
        return float(value)

    def integer(self, name: str, lowest: int, highest: int) -> int | None:
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(name, "must be a whole number")
        if not lowest <= value <= highest:
            self.fail(name, f"must be between {lowest} and {highest}")
        return value

    def boolean(self, name: str) -> bool | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            self.fail(name, "must be true or false")
        return value

    def text(self, name: str) -> str | None:
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            self.fail(name, "must be a string")
        return value

    def items(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(name, "must be a list")
        return value

    def inner(self, name: str) -> Fields:
        """The object in `name`, whose errors name it as `name.field`; empty where it is absent."""
        value = self.values.get(name)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            self.fail(name, "must be an object")
        return Fields(value, f"{self._prefix}{name}.")
