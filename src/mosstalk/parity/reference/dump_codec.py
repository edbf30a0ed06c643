"""Asks the original codec."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.reference.codec_probe import (
    CodecProbe,
    frame_levels,
    repeated,
    sample_probes,
)
from mosstalk.parity.reference.original import Original

# More than the longest attention window of the codecs, which is 10 s or 125 frames.
FRAMES = 150
# Prime, so that probes fall on every place of a frame.
_SAMPLE_STRIDE = 389
_SOUND_LEN = 4801  # samples; prime too
_TAIL_LEN = 1000  # samples of a last frame that is not whole


def dump_codec(original: Original, codec: Any, seed: int) -> CodecProbe:
    """Decode random codes and encode a random sound."""
    torch, config = original.torch, codec.config
    original.ask(codec.set_attention_implementation, "sdpa")
    original.ask(codec.set_compute_dtype, "fp32")
    generator = np.random.default_rng(seed)
    sizes = [len(quantizer.codebook.weight) for quantizer in codec.quantizer.quantizers]
    codes = generator.integers(sizes, size=(FRAMES, len(sizes)), dtype=np.int32)
    decoded = original.ask(codec.batch_decode, [torch.from_numpy(codes.T.astype(np.int64))])
    found: NDArray[np.float32] = decoded.audio[0].numpy()
    peak, rms = frame_levels(found, FRAMES)
    sound = _sound(generator, config.number_channels)
    num_samples = FRAMES * config.downsample_rate + _TAIL_LEN
    audio_codes, audio_gaps = _encode(original, codec, repeated(sound, num_samples))
    return CodecProbe(
        codes=codes,
        sample_stride=_SAMPLE_STRIDE,
        samples=sample_probes(found, _SAMPLE_STRIDE),
        peak=peak,
        rms=rms,
        sound=sound,
        num_samples=num_samples,
        audio_codes=audio_codes,
        audio_gaps=audio_gaps,
    )


def _sound(generator: np.random.Generator, num_channels: int) -> NDArray[np.float32]:
    """Harmonics and noise at 16 bits, whose end fits its beginning: [channels, samples]."""
    turns = np.arange(_SOUND_LEN) / _SOUND_LEN * 2 * np.pi
    sound = 0.02 * generator.standard_normal((num_channels, _SOUND_LEN))
    for harmonic in range(11, 400, 29):
        strength = generator.uniform(0.0, 0.1, (num_channels, 1))
        sound += strength * np.sin(harmonic * turns + generator.uniform(0, 2 * np.pi))
    return (np.round(sound.clip(-1, 1) * 32767) / 32768).astype(np.float32)


def _encode(
    original: Original, codec: Any, audio: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Codes of the whole frames and by how much each was nearest, both [frames, codebooks]."""
    torch = original.torch
    gaps = []

    def note(quantizer: Any, _inputs: Any, output: Any) -> None:
        """`output[2]`: what was quantised, [1, codebook_dim, frames]."""
        normalised = torch.nn.functional.normalize
        vectors = normalised(output[2][0].T)
        distances = 2 - 2 * vectors @ normalised(quantizer.codebook.weight).T
        nearest = distances.topk(2, largest=False).values
        gaps.append((nearest[:, 1] - nearest[:, 0]).numpy())

    hooks = [quantizer.register_forward_hook(note) for quantizer in codec.quantizer.quantizers]
    encoded = original.ask(codec.batch_encode, [torch.from_numpy(audio)])
    for hook in hooks:
        hook.remove()
    whole = int(encoded.audio_codes_lengths[0])
    codes = encoded.audio_codes[:, 0, :whole].numpy().T.astype(np.int32)
    return codes, np.stack(gaps, axis=1)[:whole].astype(np.float32)
