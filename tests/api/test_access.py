"""Who may ask: keys, hosts, origins, and the page's login."""

from __future__ import annotations

import socket

import pytest
from aiohttp import web
from yarl import URL

from supervisor.api.session import COOKIE, MOST_SESSIONS, Sessions
from tests.front import TOKEN, Front, PlainSettings, front

KEYS = PlainSettings(client_keys=("client-key", "ключ"), admin_keys=("admin-key",))
MODELS, LANES, METRICS = "/v1/models", "/api/lanes", "/metrics"


async def fine(_request: web.Request) -> web.Response:
    return web.Response(text="fine")


MORE = [web.get(path, fine) for path in (LANES, METRICS, "/healthz", "/readyz", "/")] + [web.post("/api/reload", fine)]


async def status_of(stage: Front, path: str, method: str = "GET", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with stage.client.request(method, URL(stage.url + path, encoded=True), headers=named) as answer:
        return int(answer.status)


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        (MODELS, None, 401),
        (MODELS, "wrong", 401),
        (MODELS, "client-key", 200),
        (MODELS, "ключ", 200),
        (MODELS, "admin-key", 200),
        (MODELS, TOKEN, 200),
        (LANES, None, 401),
        (LANES, "client-key", 401),
        (LANES, "admin-key", 200),
        (LANES, TOKEN, 200),
        (METRICS, None, 401),
        (METRICS, "client-key", 200),
        (METRICS, "admin-key", 200),
        ("/healthz", None, 200),
        ("/readyz", None, 200),
        ("/", None, 200),
        ("/v1/%2e%2e/api/lanes", "client-key", 400),
        ("/nothing", None, 404),
    ],
)
async def test_each_door_has_its_keys(path: str, key: str | None, status: int) -> None:
    async with front(settings=KEYS, more=MORE) as stage:
        assert await status_of(stage, path, **({"Authorization": f"Bearer {key}"} if key else {})) == status
        assert await status_of(stage, path, **({"x_api_key": key} if key else {})) == status


async def test_a_refused_key_is_told_in_openais_shape() -> None:
    async with front(settings=KEYS) as stage, stage.client.get(stage.url + MODELS) as answer:
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        error = (await answer.json())["error"]
        assert (error["source"], error["code"]) == ("freshlane", "invalid_api_key")


async def test_where_no_key_is_set_none_is_needed_and_admin_keys_default_to_the_clients() -> None:
    async with front(more=MORE) as stage:
        assert await status_of(stage, MODELS) == 200
        assert await status_of(stage, LANES) == 200
        stage.settings.client_keys = ("key",)
    async with front(settings=PlainSettings(client_keys=("key",)), more=MORE) as stage:
        assert await status_of(stage, LANES) == 401
        assert await status_of(stage, LANES, x_api_key="key") == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7411", 200),
        ("[::1]:7411", 200),
        ("192.168.1.9", 200),
        ("localhost:1", 200),
        ("LocalHost", 200),
        ("mac-studio.local:7411", 200),
        (socket.gethostname(), 200),
        ("models.example.org", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil.example@localhost:1", 403),
        ("127.0.0.1.evil.example", 403),
    ],
)
async def test_only_known_hosts_are_served(host: str, status: int) -> None:
    async with front(settings=PlainSettings(allowed_hosts=("Models.example.org",)), more=MORE) as stage:
        assert await status_of(stage, MODELS, Host=host) == status
        assert await status_of(stage, LANES, Host=host) == status


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_load_balancer_may_ask_under_any_name_whether_the_daemon_is_well(path: str) -> None:
    async with front(more=MORE) as stage:
        assert await status_of(stage, path, Host="pool-7.balancer.example") == 200
        assert await status_of(stage, path, Origin="https://evil.example") == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1"])
async def test_a_foreign_page_is_refused_everywhere(origin: str) -> None:
    async with front(more=MORE) as stage:
        for path in (MODELS, LANES, "/", "/healthz"):
            assert await status_of(stage, path, Origin=origin) == 403
        assert await status_of(stage, "/api/reload", "POST", Origin=origin) == 403


async def test_the_daemons_own_page_may_ask() -> None:
    async with front(more=MORE) as stage:
        assert await status_of(stage, "/api/reload", "POST", Origin=stage.url) == 200


async def test_an_allowed_origin_may_use_v1_and_nothing_else() -> None:
    page = "https://page.example"
    settings = PlainSettings(client_keys=("key",), allowed_origins=(page,))
    async with front(settings=settings, more=MORE) as stage:
        headers = {"Origin": page, "Access-Control-Request-Method": "POST"}
        async with stage.client.options(stage.url + "/v1/chat/completions", headers=headers) as answer:
            assert answer.status == 204
            assert answer.headers["Access-Control-Allow-Origin"] == page
            assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
        async with stage.client.get(stage.url + MODELS, headers={"Origin": page, "x-api-key": "key"}) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, page)
        async with stage.client.get(stage.url + MODELS, headers={"Origin": page}) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (401, page)
        assert await status_of(stage, LANES, Origin=page, x_api_key="key") == 403


async def test_the_page_logs_in_with_a_key_and_stays_in_by_a_cookie() -> None:
    async with front(settings=KEYS, more=MORE) as stage:
        session = stage.url + "/api/session"
        async with stage.client.post(session, json={"key": "client-key"}) as answer:
            assert answer.status == 401
        async with stage.client.post(session, json={"key": "admin-key"}) as answer:
            assert answer.status == 200
            written = answer.headers["Set-Cookie"]
            cookie = answer.cookies[COOKIE].value
        assert "HttpOnly" in written
        assert "SameSite=Strict" in written
        assert "admin-key" not in written
        assert await status_of(stage, LANES, Cookie=f"{COOKIE}={cookie}") == 200
        assert await status_of(stage, MODELS, Cookie=f"{COOKIE}={cookie}") == 401
        assert await status_of(stage, "/api/session", "DELETE", Cookie=f"{COOKIE}={cookie}") == 200
        assert await status_of(stage, LANES, Cookie=f"{COOKIE}={cookie}") == 401


async def test_garbage_does_not_log_in() -> None:
    async with front(settings=KEYS) as stage:
        for data in (b"", b"{", b"[]", b'{"key": 3}'):
            async with stage.client.post(stage.url + "/api/session", data=data) as answer:
                assert answer.status == 401
        async with stage.client.post(stage.url + "/api/session", data=b"x" * 10_000) as answer:
            assert answer.status == 413


def test_sessions_are_few_and_end() -> None:
    sessions = Sessions()
    first = sessions.begin(b"digest")
    assert sessions.key_digest_of(first) == b"digest"
    last = [sessions.begin(b"digest") for _ in range(MOST_SESSIONS)][-1]
    assert sessions.key_digest_of(first) is None
    assert sessions.key_digest_of(last) == b"digest"
    assert sessions.key_digest_of("") is None


async def test_a_star_among_the_allowed_origins_means_every_page_but_for_v1_alone() -> None:
    async with front(settings=PlainSettings(allowed_origins=("*",)), more=MORE) as stage:
        assert await status_of(stage, MODELS, Origin="https://any.example") == 200
        assert await status_of(stage, LANES, Origin="https://any.example") == 403


async def test_a_login_that_is_nested_without_end_is_only_a_wrong_key() -> None:
    async with (
        front(settings=KEYS) as stage,
        stage.client.post(stage.url + "/api/session", data=b"[" * 4000) as answer,
    ):
        assert answer.status == 401
