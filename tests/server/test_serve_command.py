"""`mosstalk serve`: what it refuses before it loads anything."""

import socket

import pytest

from mosstalk import cli


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "--api-key"),
        (["--port", "70000"], "port"),
        (["--host", "127.0.0.1", "--model", "nothing-like-it", "--port", "0"], "nothing-like-it"),
        (["--port", "0", "--max-streams", "0"], "max_streams"),
        (["--port", "0", "--time-limit", "0"], "time_limit"),
        (["--api-key", "short"], "API key"),
        (["--allow-origin", "everywhere"], "origin"),
    ],
    ids=str,
)
def test_serve_refuses(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", *arguments]) in (1, 2)
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and words in error


def test_serve_names_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert cli.main(["serve", "--port", port]) == 2
    assert f"port {port}" in capsys.readouterr().err
