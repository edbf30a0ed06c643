"""Who may talk to a server: key, host, origin; and what a request's id is."""

import pytest
from live_server import LiveServer, live, problem

from mosstalk import Speaker, UsageError
from mosstalk.server.settings import ServerSettings

KEY = "a long secret"


def test_everything_but_page_and_health_needs_the_key(talker: Speaker) -> None:
    with live(talker, api_key=KEY) as server:
        for path in ("/v1/models", "/v1/audio/voices", "/metrics", "/openapi.json", "/v1/nothing"):
            for given in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}):
                response = server.http(**given).get(path)
                assert problem(response, 401)["code"] == "invalid_api_key"
                assert response.headers["www-authenticate"] == "Bearer"
            answer = server.http(Authorization=f"Bearer {KEY}").get(path)
            assert answer.status_code == (404 if "nothing" in path else 200)
        assert server.http().get("/health").status_code == 200
        odd = {"Authorization": b"Bearer \xff\xfe"}
        problem(server.http().get("/v1/models", headers=odd), 401)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "[::1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
    ids=str,
)
def test_other_hosts_and_origins_are_refused(shared: LiveServer, headers: dict[str, str]) -> None:
    problem(shared.http(**headers).get("/v1/models"), 403)


def test_own_origin_and_names_of_this_machine_are_taken(shared: LiveServer) -> None:
    for headers in (
        {"Origin": shared.url},
        {"Host": "localhost:99"},
        {"Host": "[::1]"},
    ):
        assert shared.http(**headers).get("/v1/models").status_code == 200


def test_cors_is_off_until_an_origin_is_allowed(shared: LiveServer, talker: Speaker) -> None:
    preflight = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    refused = shared.http().options("/v1/audio/speech", headers=preflight)
    assert not [name for name in refused.headers if name.startswith("access-control")]
    with live(talker, origins=("https://app.example",), api_key=KEY) as server:
        allowed = server.http().options("/v1/audio/speech", headers=preflight)
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        other = preflight | {"Origin": "https://evil.example"}
        denied = server.http().options("/v1/audio/speech", headers=other)
        assert "access-control-allow-origin" not in denied.headers
        answer = server.http(Origin="https://app.example", Authorization=f"Bearer {KEY}").get(
            "/v1/models"
        )
        assert answer.headers["access-control-allow-origin"] == "https://app.example"


def test_request_ids(shared: LiveServer) -> None:
    given = shared.http(**{"X-Request-Id": "mine-1"}).get("/v1/models")
    assert given.headers["x-request-id"] == "mine-1"
    ids = {
        shared.http(**{"X-Request-Id": "x" * 80}).get(path).headers["x-request-id"]
        for path in ("/v1/models", "/v1/nothing")
    }
    assert len(ids) == 2 and all(len(value) == 32 for value in ids)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_other_addresses_need_a_key(host: str) -> None:
    with pytest.raises(UsageError, match="--api-key"):
        ServerSettings(host=host)
    assert not ServerSettings(host=host, api_key=KEY).is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_addresses_need_none(host: str) -> None:
    assert ServerSettings(host=host).is_loopback


@pytest.mark.parametrize(
    "fields",
    [{"port": 70_000}, {"api_key": "short"}, {"api_key": "schlüssel-lang"}, {"origins": ("app",)}],
    ids=str,
)
def test_settings_out_of_range(fields: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        ServerSettings(**fields)  # type: ignore[arg-type]
