"""Prometheus' text, as sums by name: what one server says, whatever labels it says it with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from prometheus_client.parser import text_string_to_metric_families

from supervisor.readings.numbers import number


class Families:
    """The samples of one scrape."""

    def __init__(self, samples: dict[str, list[tuple[dict[str, str], float]]]) -> None:
        self._samples = samples

    def has(self, prefix: str) -> bool:
        """Whether any name begins so."""
        return any(name.startswith(prefix) for name in self._samples)

    def sum(self, name: str) -> float | None:
        """Over all labels; None where the name is not there."""
        found = self._samples.get(name)
        return sum(value for _, value in found) if found else None

    def by_number(self, name: str, labels: Sequence[str]) -> tuple[float, ...]:
        """In the order of a numeric label, the first of ``labels`` that is there."""
        summed: defaultdict[float, float] = defaultdict(float)
        for said, value in self._samples.get(name, []):
            place = next((number(said[label]) for label in labels if label in said), None)
            if place is not None:
                summed[place] += value
        return tuple(summed[place] for place in sorted(summed))


def families(body: bytes) -> Families | None:
    """None where the text is not Prometheus'."""
    samples: defaultdict[str, list[tuple[dict[str, str], float]]] = defaultdict(list)
    try:
        for family in text_string_to_metric_families(body.decode("utf-8", errors="replace")):
            for sample in family.samples:
                value = number(sample.value)
                if value is not None:
                    samples[sample.name].append((sample.labels, value))
    except Exception:  # noqa: BLE001 - the parser raises whatever a broken text makes it stumble over
        return None
    return Families(dict(samples))
