"""WebSocket /v1/audio/stream: text in pieces, audio sentence by sentence."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from live_server import LiveServer, live
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from mosstalk import Speaker
from mosstalk.server.encoding import pcm16

START = {"type": "start", "max_frames": 3, "seed": 1}


@contextmanager
def talking(server: LiveServer, **headers: str) -> Iterator[ClientConnection]:
    url = f"ws://127.0.0.1:{server.port}/v1/audio/stream"
    # A client that no longer reads does not see the answer to its closing.
    with connect(url, additional_headers=headers, proxy=None, close_timeout=0.2) as socket:
        yield socket


def send(socket: ClientConnection, *messages: dict[str, Any]) -> None:
    for message in messages:
        socket.send(json.dumps(message))


def receive(socket: ClientConnection, until: str) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Messages up to one of a type, and the audio of each sentence."""
    messages, audio = [], []
    while True:
        content = socket.recv(20)
        if isinstance(content, bytes):
            audio[-1] += content
            continue
        messages.append(json.loads(content))
        if messages[-1]["type"] == "sentence":
            audio.append(b"")
        if messages[-1]["type"] == until:
            return messages, audio


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def spoken(speaker: Speaker, words: str) -> bytes:
    return pcm16(speaker.say(words, max_frames=3, seed=1).samples)


def test_sentences_are_spoken_as_they_become_complete(shared: LiveServer) -> None:
    with talking(shared) as socket:
        send(socket, START, text("Pi is 3."), text("14 or so. And th"))
        messages, audio = receive(socket, "sentence_end")
        send(socket, text("en?"), text("! Yes."), {"type": "end"})
        more, more_audio = receive(socket, "done")
    ready = messages[0]
    speaker = shared.service.speaker
    assert ready["type"] == "ready" and ready["seed"] == 1
    assert (ready["sample_rate"], ready["channels"]) == (speaker.sample_rate, speaker.num_channels)
    sentences = [m["text"] for m in messages + more if m["type"] == "sentence"]
    assert sentences == ["Pi is 3.14 or so.", "And then?!", "Yes."]
    assert audio + more_audio == [spoken(speaker, sentence) for sentence in sentences]
    ends = [m for m in messages + more if m["type"] == "sentence_end"]
    assert [(m["index"], m["stop_reason"], m["frames"]) for m in ends] == [
        (index, "max_frames", 3) for index in range(3)
    ]


def test_flush_speaks_what_is_there(shared: LiveServer) -> None:
    with talking(shared) as socket:
        send(socket, START, text("No mark"), {"type": "flush"})
        messages, audio = receive(socket, "sentence_end")
        assert [m["text"] for m in messages if m["type"] == "sentence"] == ["No mark"]
        assert len(audio[0]) > 0
        send(socket, text(" \n "), {"type": "end"})
        assert [m["type"] for m in receive(socket, "done")[0]] == ["done"]


def test_cancel_stops_what_is_spoken_and_forgets_the_rest(talker: Speaker) -> None:
    with live(talker) as server, talking(server) as socket:
        send(socket, {**START, "max_frames": 900}, text("One. Two. Three. "))
        while isinstance(socket.recv(20), str):
            pass
        send(socket, {"type": "cancel"})
        receive_late(socket)
        assert server.wait_until_idle(5) < 0.2
        send(socket, text("Four. Five."), {"type": "flush"}, {"type": "cancel"})  # before it begins
        receive_late(socket)
        send(socket, text("Six."), {"type": "flush"})
        first = json.loads(socket.recv(20))
        assert (first["type"], first["text"]) == ("sentence", "Six.")
        while isinstance(socket.recv(20), str):
            pass
        send(socket, {"type": "cancel"}, {"type": "end"})
        receive_late(socket)
        assert json.loads(socket.recv(20))["type"] == "done"


def receive_late(socket: ClientConnection) -> None:
    """Skip what was under way, up to the word that all is cancelled."""
    while True:
        content = socket.recv(20)
        if isinstance(content, str) and json.loads(content)["type"] == "cancelled":
            return


def test_a_client_that_hangs_up_frees_its_place(talker: Speaker) -> None:
    with live(talker) as server:
        with talking(server) as socket:
            send(socket, {**START, "max_frames": 900}, text("One. Two. "))
            while isinstance(socket.recv(20), str):
                pass
            assert server.service.scheduler.stats().streams == 1
            socket.socket.close()
        assert server.wait_until_idle(5) < 0.2


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        (["no json"], "json_invalid"),
        (['{"type": "text", "text": "Hi."}'], "literal_error"),
        (['{"type": "start", "voice": "nobody"}'], "unknown_voice"),
        (['{"type": "start", "model": "whisper"}'], "model_not_found"),
        (['{"type": "start", "path": "/etc/passwd"}'], "extra_forbidden"),
        (['{"type": "start"}', '{"type": "shout"}'], "union_tag_invalid"),
        (['{"type": "start"}', '{"type": "text", "text": 3}'], "string_type"),
        (['{"type": "start"}', '{"type": "end"}', '{"type": "text", "text": "a"}'], None),
        (
            ['{"type": "start", "temperature": -3}', '{"type": "text", "text": "Hi. a"}'],
            "invalid_value",
        ),
    ],
    ids=range(9),
)
def test_wrong_messages_end_the_conversation(
    shared: LiveServer, messages: list[str], code: str | None
) -> None:
    with talking(shared) as socket:
        for message in messages:
            socket.send(message)
        seen: list[dict[str, Any]] = []
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                seen.append(json.loads(socket.recv(20)))
    if code is None:  # it may have ended well before
        return
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
    assert seen[-1]["type"] == "error"
    assert set(seen[-1]["error"]) == {"message", "type", "code", "param"}
    assert seen[-1]["error"]["code"] == code


def test_binary_messages_and_too_much_text_end_it(shared: LiveServer) -> None:
    with talking(shared) as socket:
        send(socket, START)
        receive(socket, "ready")
        socket.send(b"\x00\x01")
        with pytest.raises(ConnectionClosed):
            while True:
                socket.recv(20)
    with talking(shared) as socket:
        send(socket, START, *[text("a" * 20_000)] * 3)
        with pytest.raises(ConnectionClosed):
            while True:
                assert "internal" not in str(socket.recv(20))
    assert shared.speak("Hi.", max_frames=1).status_code == 200


def test_key_in_the_first_message_or_in_a_header(talker: Speaker) -> None:
    with live(talker, api_key="a long secret") as server:
        with talking(server) as socket:
            send(socket, START)
            messages, _ = receive(socket, "error")
            assert messages[-1]["error"]["code"] == "invalid_api_key"
        with talking(server) as socket:
            send(socket, START | {"api_key": "a long secret"})
            assert receive(socket, "ready")[0]
        with talking(server, Authorization="Bearer a long secret") as socket:
            send(socket, START)
            assert receive(socket, "ready")[0]


def test_pages_of_other_origins_are_refused(shared: LiveServer) -> None:
    with pytest.raises(InvalidStatus), talking(shared, Origin="https://elsewhere.example"):
        pass
    with talking(shared, Origin=shared.url) as socket:
        send(socket, START)
        assert receive(socket, "ready")[0]


def test_busy_is_told_with_a_time(talker: Speaker) -> None:
    with live(talker, max_streams=1, max_queue=0) as server, talking(server) as first:
        send(first, {**START, "max_frames": 900}, text("One. Two. "))
        server.wait_until_speaking(1)
        with talking(server) as second:
            send(second, START, text("One."), {"type": "flush"})
            messages, _ = receive(second, "error")
        assert messages[-1]["error"]["code"] == "busy"
        assert messages[-1]["retry_after"] >= 1


def test_pcm16_rounds_and_clips() -> None:
    samples = np.array([[0.0, 1.0, -2.0, 0.5]], np.float32)
    assert np.frombuffer(pcm16(samples), "<i2").tolist() == [0, 32767, -32767, 16384]
