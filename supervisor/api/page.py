"""The page at /: static files, read once, that hold nothing and ask nobody but this daemon."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

FILES_AT = "/dashboard/"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
"""What the page is made of. Anything else in its folder (a licence) is not served."""
HEADERS = {
    # The browser itself refuses whatever would leave this daemon, be it a script, an image or a form.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, as it is served."""

    content: bytes
    content_type: str
    etag: str


def page_routes() -> list[web.RouteDef]:
    """``/`` and the files it needs; they are public."""
    served = read_files()

    async def page(request: web.Request) -> web.StreamResponse:
        return _answer(request, served["index.html"])

    async def part(request: web.Request) -> web.StreamResponse:
        return _answer(request, served.get(request.match_info["name"]))

    return [web.get("/", page), web.get(FILES_AT + "{name:.+}", part)]


def read_files() -> dict[str, PageFile]:
    """Each file of the page by its path below its folder."""
    return _read(files("supervisor.api") / "dashboard", "")


def _read(folder: Traversable, above: str) -> dict[str, PageFile]:
    found: dict[str, PageFile] = {}
    for entry in folder.iterdir():
        name = above + entry.name
        content_type = TYPES.get(name[name.rfind(".") :])
        if entry.is_dir():
            found |= _read(entry, name + "/")
        elif content_type is not None:
            content = entry.read_bytes()
            found[name] = PageFile(content, content_type, hashlib.sha256(content).hexdigest()[:20])
    return found


def _answer(request: web.Request, file: PageFile | None) -> web.StreamResponse:
    if file is None:
        raise web.HTTPNotFound
    known = request.if_none_match or ()
    if any(tag.value in (file.etag, "*") for tag in known):
        response = web.Response(status=304, headers=HEADERS)
    else:
        response = web.Response(body=file.content, content_type=file.content_type, charset="utf-8", headers=HEADERS)
    response.etag = file.etag
    return response
