"""The codec with its weights stored in each type."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.storage import StorageType
from mosstalk.checkpoint.weights import as_weight
from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.figure import Figure, Line, Table
from mosstalk.parity.opening import Opened
from mosstalk.parity.storage.rounding import DRIFT_TOLERANCE, TYPES

_SAME_DB = 200.0  # stands for the signal-to-noise ratio of equal signals


def compare_codec(
    opened: Opened, num_frames: int, seed: int
) -> tuple[list[CheckResult], Table, Figure]:
    """Random codes decoded; the weights are rounded as `mosstalk convert` stores them."""
    codecs = _codec_of(opened)
    exact = codecs(StorageType.F32)
    generator = np.random.default_rng(seed)
    shape = (num_frames, exact.num_codebooks)
    codes = generator.integers(exact.config.codebook_size, size=shape, dtype=np.int32)
    whole = exact.start(num_frames)(codes)
    seconds = _by_second(whole, exact.sample_rate)
    results, cells, lines = [], [], []
    for storage in TYPES:
        found = codecs(storage).start(num_frames)(codes)
        comparison = Comparison(f"codec, {storage}", DRIFT_TOLERANCE[storage])
        comparison.add("samples", whole, found)
        results.append(comparison.result())
        difference = float(np.abs(found - whole).max() / np.abs(whole).max())
        cells.append((str(storage), f"{signal_to_noise_db(whole, found):.1f}", f"{difference:.2e}"))
        ratios = [
            signal_to_noise_db(a, b)
            for a, b in zip(seconds, _by_second(found, exact.sample_rate), strict=True)
        ]
        lines.append(Line(str(storage), tuple(range(len(ratios))), tuple(ratios)))
    table = Table(
        f"Codec, {num_frames} frames of noise",
        ("weight type", "signal to noise, dB", "samples, largest"),
        tuple(cells),
    )
    return results, table, Figure("Codec: signal to noise", "second", "dB", tuple(lines))


def signal_to_noise_db(signal: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """10 log10 of the signal's power by that of the difference; _SAME_DB where there is none."""
    wide = signal.astype(np.float64)
    noise = float(np.square(wide - found).sum())
    power = float(np.square(wide).sum())
    return _SAME_DB if noise == 0 else 10 * float(np.log10(max(power, 1e-300) / noise))


def _by_second(samples: NDArray[np.float32], sample_rate: int) -> list[NDArray[np.float32]]:
    return np.array_split(samples, range(sample_rate, samples.shape[1], sample_rate), axis=1)


def _codec_of(opened: Opened) -> Callable[[StorageType], MossAudioTokenizer]:
    checkpoint = opened.checkpoint
    config, tensors = checkpoint.codec_config, checkpoint.codec_tensors
    assert config is not None and tensors is not None

    def stored_as(storage: StorageType) -> MossAudioTokenizer:
        held = {name: as_weight(tensor, storage) for name, tensor in tensors.items()}
        return opened.codec_of(config, held)

    return stored_as
