"""Streaming decode is exact: the same bits whatever the chunks, threads, windows and neighbours."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from codec_files import Golden, random_codes, tiny_codec, tiny_config, tiny_full_config
from numpy.typing import NDArray

from mosstalk.codec.moss_audio_tokenizer.codec import Decoder, MossAudioTokenizer
from mosstalk.compute.backend import open_backend
from mosstalk.compute.seats import Seat
from mosstalk.compute.state import State

FRAMES = 1000  # 80 seconds
CHUNKS = [1, 2, 8, 15]


@pytest.fixture(scope="module", params=[tiny_config, tiny_full_config], ids=["nano", "full"])
def config(request: pytest.FixtureRequest) -> dict[str, Any]:
    values: dict[str, Any] = request.param()
    return values


@pytest.fixture(scope="module")
def codec(config: dict[str, Any]) -> MossAudioTokenizer:
    return tiny_codec(config=config)


@pytest.fixture(scope="module")
def codes(codec: MossAudioTokenizer) -> NDArray[np.int32]:
    return random_codes(FRAMES, codec)


@pytest.fixture(scope="module")
def whole(codec: MossAudioTokenizer, codes: NDArray[np.int32]) -> NDArray[np.float32]:
    return codec.decoder.decode(codec.decoder.new_state(), codes)


def decode_chunks(
    decoder: Decoder, state: State, codes: NDArray[np.int32], size: int
) -> NDArray[np.float32]:
    parts = [decoder.decode(state, codes[at : at + size]) for at in range(0, len(codes), size)]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [*CHUNKS, FRAMES])
def test_a_thousand_frames_in_chunks(
    config: dict[str, Any],
    codes: NDArray[np.int32],
    whole: NDArray[np.float32],
    threads: int,
    size: int,
) -> None:
    decoder = tiny_codec(threads=threads, config=config).decoder
    state = decoder.new_state()
    windows = [cache.window / cache.multiple for cache in state.spec.caches]
    assert max(windows) < FRAMES / 4, "the windows must wrap"
    np.testing.assert_array_equal(decode_chunks(decoder, state, codes, size), whole)
    assert np.isfinite(whole).all()
    assert np.ptp(whole[:, -100:]) > 0


@pytest.mark.parametrize("threads", [1, 2])
def test_streams_that_are_decoded_together(
    config: dict[str, Any], codes: NDArray[np.int32], threads: int
) -> None:
    """Seats that begin, end and begin again at other frames, past their windows, more frames than
    a call takes among them."""
    codec = tiny_codec(threads=threads, config=config)
    generator = np.random.default_rng(1)
    longest = max(cache.window // cache.multiple for cache in codec.decoder.new_state().spec.caches)
    parts = [codes[i * 7 : i * 7 + longest + 30 * i] for i in range(6)]
    seats = codec.seats(3)
    running: dict[int, Seat] = {}
    waiting, made, found = list(range(6)), [0] * 6, [list[NDArray[np.float32]]() for _ in range(6)]
    while waiting or running:
        seat = seats.take() if waiting else None
        if seat is not None:
            running[waiting.pop(0)] = seat
        chosen = [i for i in running if len(running) == 1 or generator.random() < 0.7]
        if not chosen:
            continue
        ends = {i: made[i] + int(generator.choice([1, 2, 8, 20])) for i in chosen}
        calls = [(running[i], parts[i][made[i] : ends[i]]) for i in chosen]
        for i, samples in zip(chosen, codec.decode_seats(calls), strict=True):
            found[i].append(samples)
            made[i] = ends[i]
            if made[i] >= len(parts[i]):
                seats.give_back(running.pop(i))
    for part, samples in zip(parts, found, strict=True):
        whole = codec.start(len(part))(part)
        np.testing.assert_array_equal(np.concatenate(samples, axis=1), whole)


@pytest.mark.parametrize("name", ["codec_nano_narrow", "codec_full_narrow"])
@pytest.mark.parametrize("size", CHUNKS)
def test_golden_codec_in_chunks(golden_dir: Path, name: str, size: int) -> None:
    golden = Golden(golden_dir, name)
    decoder = golden.codec(open_backend("cpu", 2)).decoder
    codes = golden.codes("long_codes")
    whole = decoder.decode(decoder.new_state(), codes)
    chunks = decode_chunks(decoder, decoder.new_state(), codes, size)
    np.testing.assert_array_equal(chunks, whole)


def test_streams_on_one_decoder_do_not_touch_each_other(codec: MossAudioTokenizer) -> None:
    decoder = codec.decoder
    a, b = random_codes(60, codec, seed=1), random_codes(45, codec, seed=2)
    first = decoder.decode(decoder.new_state(), a)
    other = decoder.decode(decoder.new_state(), b)
    again = decoder.decode(decoder.new_state(), a)
    np.testing.assert_array_equal(first, again)
    states = decoder.new_state(), decoder.new_state()
    parts: tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]] = ([], [])
    for at in range(0, 60, 3):
        for state, codes, out in zip(states, (a, b), parts, strict=True):
            if at < len(codes):
                out.append(decoder.decode(state, codes[at : at + 3]))
    np.testing.assert_array_equal(np.concatenate(parts[0], axis=1), first)
    np.testing.assert_array_equal(np.concatenate(parts[1], axis=1), other)


def test_a_reset_state_is_as_new(codec: MossAudioTokenizer) -> None:
    decoder, state = codec.decoder, codec.decoder.new_state()
    codes = random_codes(50, codec, seed=3)
    first = decoder.decode(state, codes)
    decoder.decode(state, random_codes(70, codec, seed=4))
    state.reset()
    np.testing.assert_array_equal(decoder.decode(state, codes), first)


@pytest.mark.parametrize("frames", [1, 7, 15, 40])
def test_a_state_for_few_frames_is_exact_and_small(
    codec: MossAudioTokenizer,
    codes: NDArray[np.int32],
    whole: NDArray[np.float32],
    frames: int,
) -> None:
    small = codec.decoder.new_state(frames)
    audio = codec.decoder.decode(small, codes[:frames])
    np.testing.assert_array_equal(audio, whole[:, : frames * codec.frame_len])
    if frames < 15:
        assert num_bytes(small) < num_bytes(codec.decoder.new_state())


def test_a_state_does_not_grow(codec: MossAudioTokenizer) -> None:
    """Its windows and one call more, whatever it has decoded; each cache stays where it is."""
    state = codec.decoder.new_state()
    held = [(array, array.nbytes) for array in (*state.keys, *state.values)]
    for at in range(0, FRAMES, 50):
        codec.decoder.decode(state, random_codes(50, codec, seed=at))
    now = (*state.keys, *state.values)
    assert all(a is b and a.nbytes == size for (a, size), b in zip(held, now, strict=True))
    assert state.lengths == [FRAMES]
    limit = sum(
        2 * 4 * cache.heads * cache.head_dim * (cache.window + 17 * cache.multiple + 16)
        for cache in state.spec.caches
    )
    assert num_bytes(state) <= limit


def test_fewer_codebooks_is_a_matter_of_the_codes(codec: MossAudioTokenizer) -> None:
    """Left-out codebooks and those given as -1 are the same."""
    codes = random_codes(5, codec)
    decoder = codec.decoder
    left_out = decoder.decode(decoder.new_state(), codes[:, :2])
    codes[:, 2:] = -1
    np.testing.assert_array_equal(decoder.decode(decoder.new_state(), codes), left_out)


def test_cpu_agrees_with_reference_beyond_the_windows() -> None:
    backends = tiny_codec("cpu", 2), tiny_codec("reference")
    codes = random_codes(40, backends[0], seed=5)
    cpu, reference = (c.decoder.decode(c.decoder.new_state(), codes) for c in backends)
    assert np.abs(cpu - reference).max() <= 3e-6 * np.abs(reference).max()


def test_encoding_is_causal_and_exact(config: dict[str, Any], codec: MossAudioTokenizer) -> None:
    """Codes of the beginning do not depend on what follows, nor on the threads."""
    wav = noise(codec, 60 * codec.frame_len + 123, seed=6)
    codes = codec.encode(wav)
    assert codes.shape == (60, codec.num_codebooks)
    assert len(np.unique(codes)) > 10
    for frames in (1, 15, 16, 17, 59):
        part = codec.encode(wav[:, : frames * codec.frame_len])
        np.testing.assert_array_equal(part, codes[:frames])
    np.testing.assert_array_equal(tiny_codec(threads=2, config=config).encode(wav), codes)


def test_encoder_agrees_with_reference(config: dict[str, Any], codec: MossAudioTokenizer) -> None:
    wav = noise(codec, 30 * codec.frame_len, seed=7)
    reference = tiny_codec("reference", config=config)
    np.testing.assert_array_equal(codec.encode(wav), reference.encode(wav))


def noise(codec: MossAudioTokenizer, num_samples: int, seed: int) -> NDArray[np.float32]:
    """[channels, num_samples]"""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((codec.num_channels, num_samples)).astype(np.float32)


def num_bytes(state: State) -> int:
    return sum(array.nbytes for array in (*state.keys, *state.values))
