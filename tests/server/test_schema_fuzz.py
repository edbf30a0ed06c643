"""Requests made up from the API's own schema: nothing that a client sends is a server's failure."""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from live_server import LiveServer

from mosstalk.server.requests import MAX_INPUT_CHARACTERS
from mosstalk.server.schema import openapi

_EXAMPLES = 40
_MAX_FRAMES, _MAX_CHARACTERS = 3, 400  # so that a text that is spoken does not take long

schema = schemathesis.openapi.from_dict(openapi())


@schema.parametrize()
@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_is_a_servers_failure(shared: LiveServer, case: schemathesis.Case) -> None:
    if isinstance(case.body, dict):
        _shorten(case.body)
    response = case.call(base_url=shared.url, timeout=60)
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert set(response.json()) == {"error"}


def _shorten(body: dict[str, Any]) -> None:
    """Make what would be spoken at length short; leave what is wrong as it is."""
    frames = body.get("max_frames")
    if frames is None or (isinstance(frames, int) and frames > _MAX_FRAMES):
        body["max_frames"] = _MAX_FRAMES
    if isinstance(body.get("input"), str) and len(body["input"]) <= MAX_INPUT_CHARACTERS:
        body["input"] = body["input"][:_MAX_CHARACTERS]
