"""The kinds of texts in lanes.yaml: words, names, paths and secrets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, SecretStr, ValidationInfo, WithJsonSchema

from supervisor.settings.block import FILE_FOLDER, is_from_file


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
