"""Loads lanes.yaml: settings ready to use, or every problem at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervisor.config.checks import Finding, at, check, has, is_spoiled
from supervisor.config.document import SPOILED, Document, read_document
from supervisor.config.file_rules import clashes, daemon_complaints, lane_name_complaint
from supervisor.config.interpolate import InterpolationError, Outside
from supervisor.config.keys import unknown_key_text
from supervisor.config.lane_rules import complaints, doubts, remarks
from supervisor.config.merge import RawLane, raw_lane
from supervisor.config.problems import ConfigError, KeyPath, Problem, got
from supervisor.config.scalars import BareWord
from supervisor.settings import LaneSettings, Settings, TopSettings
from supervisor.settings.block import FILE_FOLDER


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file without errors. ``warnings`` are allowed but surely not meant."""

    settings: Settings
    warnings: tuple[Problem, ...]


def load(path: str | Path, environment: Mapping[str, str] | None = None) -> Loaded:
    """Loads the file at ``path``. Raises ConfigError, with all that is wrong, if it cannot be used."""
    place = Path(path)
    try:
        content = place.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
        text = f"cannot be read: {reason}; name a file with -c, or write one with `freshlane init`"
        raise ConfigError([Problem((), text, file=str(path))]) from None
    return load_content(content, str(path), place.absolute().parent, environment)


def load_content(content: bytes, file: str, folder: Path, environment: Mapping[str, str] | None = None) -> Loaded:
    """The same from bytes; relative paths count from ``folder``. Raises ConfigError."""
    document = read_document(content, file)
    loading = _Loading(document, Outside(os.environ if environment is None else environment, folder))
    return loading.load()


class _Loading:
    """One file on its way to settings; problems gather in the document."""

    def __init__(self, document: Document, outside: Outside) -> None:
        self._document = document
        self._written = document.tree
        self._outside = outside
        self._warnings: list[Problem] = []

    def load(self) -> Loaded:
        tree = self._filled_in(self._written, ())
        defaults = self._block(tree, "defaults")
        own_lanes = self._block(tree, "lanes")
        top = self._checked_top({key: value for key, value in tree.items() if key not in {"defaults", "lanes"}})
        self._check_defaults(defaults)
        raw_lanes = self._raw_lanes(own_lanes, defaults)
        lanes = {lane.name: self._checked_lane(lane) for lane in raw_lanes}
        for path, text in clashes(raw_lanes, tree.get("listen", TopSettings().listen)):
            self._complain(path, text)
        if self._document.is_whole and own_lanes == {} and not is_spoiled(tree, ("lanes",)):
            self._complain(("lanes",), "is empty or missing; a file needs at least one lane")
        if self._document.problems:
            raise ConfigError(self._document.problems)
        return Loaded(self._settings(top, lanes), tuple(self._warnings))

    def _settings(self, top: dict[str, Any], lanes: dict[str, LaneSettings | None]) -> Settings:
        context = {FILE_FOLDER: self._outside.folder}
        return Settings.model_validate({**top, "lanes": lanes}, context=context)

    def _filled_in(self, value: Any, path: KeyPath) -> Any:
        """``value`` with every ${...} replaced; one that leads nowhere is spoiled."""
        if isinstance(value, dict):
            return {key: self._filled_in(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._filled_in(inner, (*path, index)) for index, inner in enumerate(value)]
        if not isinstance(value, str) or isinstance(value, BareWord):
            return value
        try:
            return self._outside.fill_in(value)
        except InterpolationError as error:
            self._complain(path, str(error))
            return SPOILED

    def _block(self, tree: dict[str, Any], name: str) -> dict[str, Any]:
        value = tree.get(name)
        if isinstance(value, dict):
            return value
        if value is not None and value is not SPOILED:
            self._complain((name,), "must be keys and values")
            tree[name] = SPOILED
        return {}

    def _checked_top(self, values: dict[str, Any]) -> dict[str, Any]:
        checked = check(TopSettings, values, self._outside.folder)
        if isinstance(checked, list):
            for finding in checked:
                self._report(finding, finding.path)
        for path, text in daemon_complaints(values):
            self._complain_anew(values, path, path, text)
        return values

    def _check_defaults(self, defaults: dict[str, Any]) -> None:
        """On their own too: a key that every lane overrides must still be right."""
        self._checked_values(defaults, lambda path: ("defaults", *path))

    def _raw_lanes(self, own_lanes: dict[str, Any], defaults: dict[str, Any]) -> list[RawLane]:
        lanes: list[RawLane] = []
        for name, own in own_lanes.items():
            if own is SPOILED:
                continue
            wrong = lane_name_complaint(name)
            if wrong is not None:
                self._complain(("lanes", name), wrong)
            if isinstance(own, dict):
                lanes.append(raw_lane(name, own, defaults))
            else:
                text = "is empty; give it `model`, `command`, `preset` or `attach`"
                self._complain(("lanes", name), text if own is None else "must be keys and values")
        return lanes

    def _checked_lane(self, lane: RawLane) -> LaneSettings | None:
        checked = self._checked_values(lane.filled, lane.origin, lane.name)
        for path, text in complaints(lane):
            self._complain_anew(lane.filled, path, lane.origin(path), text)
        for path, text in (*remarks(lane), *(doubts(checked) if checked else ())):
            place = lane.origin(path)
            self._warnings.append(Problem(place, text, self._document.line_of(place), self._document.file))
        return checked

    def _checked_values(self, values: dict[str, Any], origin: Any, name: str = "defaults") -> LaneSettings | None:
        if "name" in values:
            self._complain(origin(("name",)), "unknown key; a lane's name is its key under `lanes`")
        checked = check(LaneSettings, {**values, "name": name}, self._outside.folder)
        if not isinstance(checked, list):
            return checked
        for finding in checked:
            self._report(finding, origin(finding.path))
        return None

    def _report(self, finding: Finding, place: KeyPath) -> None:
        if finding.is_unknown_key:
            self._complain(place, unknown_key_text(place))
            return
        shown = got(self._as_written(place, finding.value), place) if finding.shows_value else ""
        self._complain(place, finding.text + shown)

    def _as_written(self, path: KeyPath, value: Any) -> Any:
        """What the file says there: a value from outside is never shown."""
        if not has(self._written, path):
            return value
        written = at(self._written, path)
        return None if isinstance(written, dict | list) else written

    def _complain_anew(self, values: Any, path: KeyPath, place: KeyPath, text: str) -> None:
        """Complains unless the value was already refused."""
        if not is_spoiled(values, path):
            self._complain(place, text)

    def _complain(self, path: KeyPath, text: str) -> None:
        self._document.complain(path, text)
