"""Numbers in what was stored: a lane takes up its JSON again, whatever has become of it meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number_in(document: Mapping[str, Any], name: str, otherwise: float) -> float:
    """A number of a document; ``otherwise`` where it has none."""
    value = document.get(name)
    return float(value) if is_number(value) else otherwise
