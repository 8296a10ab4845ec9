"""What all blocks of lanes.yaml have in common.

A value from a file must be written as the file's rules say (``90s``, never ``90``). From Python code a plain number
is taken as it is: seconds, bytes, a count or a share.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo

FILE_FOLDER = "file_folder"
"""The key of the validation context that says: this is from a file, in that folder."""


class Block(BaseModel):
    """A frozen piece of lanes.yaml; a key that it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, protected_namespaces=())


def key(default: object, meaning: str, *, shown: bool = True) -> Any:
    """A key with its default, written as in the file, and its meaning. ``shown`` False keeps it out of every repr."""
    return Field(default=default, validate_default=True, description=meaning, repr=shown)


def is_from_file(info: ValidationInfo) -> bool:
    """Whether the value was written in a file, so that the file's rules hold."""
    return info.context is not None and FILE_FOLDER in info.context
