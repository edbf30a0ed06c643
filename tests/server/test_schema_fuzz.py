"""Requests made up from the API's own schema: nothing that a client sends is a server's failure."""

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from live_server import LiveServer

from mosstalk.server.schema import openapi

_EXAMPLES = 15
_MAX_FRAMES = 3  # so that a text that is spoken does not take long

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
    if isinstance(case.body, dict) and isinstance(case.body.get("max_frames", 99), int):
        case.body["max_frames"] = min(case.body.get("max_frames", _MAX_FRAMES), _MAX_FRAMES)
    response = case.call(base_url=shared.url, timeout=60)
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert set(response.json()) == {"error"}
