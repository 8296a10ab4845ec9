"""One worker as the front sees it: where it listens, what it is told, and the connections to it."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

CONNECT_TIMEOUT_S = 10.0
READ_BUFFER_BYTES = 2**18


class Upstream:
    """A worker of one generation. Close it when the generation is gone."""

    def __init__(
        self,
        generation: int,
        url: str,
        headers: Mapping[str, str] | None = None,
        served_models: Mapping[str, str] | None = None,
    ) -> None:
        self.generation = generation
        self.url = url.rstrip("/")
        self.headers = dict(headers or {})
        self.served_models = dict(served_models or {})
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections to this worker, one a request; made on the running loop when first asked for.

        Decoding has no deadline of ours: a slow answer is an answer, and a hung worker is the runner's to judge.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                read_bufsize=READ_BUFFER_BYTES,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    def served_model(self, client_name: str) -> str:
        """The name this worker expects for what the client called ``client_name``."""
        return self.served_models.get(client_name, client_name)

    def take(self, headers: Mapping[str, str], served_models: Mapping[str, str]) -> None:
        """A reload changed how it is spoken to. Names that are gone stay known: a request under one may still wait."""
        self.headers = dict(headers)
        self.served_models.update(served_models)

    async def close(self) -> None:
        """Close every connection to the worker."""
        if self._session:
            await self._session.close()
