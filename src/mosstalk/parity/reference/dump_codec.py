"""Asks the original codec."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosstalk.parity.reference.codec_probe import CodecProbe, frame_levels, sample_probes
from mosstalk.parity.reference.original import Original

# More than the longest attention window of the codecs, which is 10 s or 125 frames.
FRAMES = 150
# Prime, so that probes fall on every place of a frame.
_SAMPLE_STRIDE = 389
_AUDIO_PERIOD = 4801  # samples; prime too, and short enough to compress well
_TAIL_LEN = 1000  # samples of a last frame that is not whole


def dump_codec(original: Original, codec: Any, seed: int) -> CodecProbe:
    """Decode random codes and encode a random sound."""
    torch = original.torch
    codec.set_attention_implementation("sdpa")
    codec.set_compute_dtype("fp32")
    config = codec.config
    quantizers = codec.quantizer.quantizers
    generator = np.random.default_rng(seed)
    sizes = [quantizer.codebook.weight.shape[0] for quantizer in quantizers]
    codes = generator.integers(sizes, size=(FRAMES, len(sizes)), dtype=np.int32)
    decoded = codec.batch_decode([torch.from_numpy(codes.T.astype(np.int64))])
    found: NDArray[np.float32] = decoded.audio[0].numpy()
    num_samples = FRAMES * config.downsample_rate + _TAIL_LEN
    audio = _sound(generator, config.number_channels, num_samples)
    audio_codes, gaps = _encode(torch, codec, audio)
    peak, rms = frame_levels(found, FRAMES)
    return CodecProbe(
        codes=codes,
        sample_stride=_SAMPLE_STRIDE,
        samples=sample_probes(found, _SAMPLE_STRIDE),
        peak=peak,
        rms=rms,
        audio=audio,
        audio_codes=audio_codes,
        audio_gaps=gaps,
    )


def _sound(
    generator: np.random.Generator, num_channels: int, num_samples: int
) -> NDArray[np.float32]:
    """Harmonics and noise, the same again and again, at 16 bits: [channels, samples]."""
    turns = np.arange(_AUDIO_PERIOD) / _AUDIO_PERIOD * 2 * np.pi
    period = 0.02 * generator.standard_normal((num_channels, _AUDIO_PERIOD))
    for harmonic in range(11, 400, 29):
        strength = generator.uniform(0.0, 0.1, (num_channels, 1))
        period += strength * np.sin(harmonic * turns + generator.uniform(0, 2 * np.pi))
    steps = np.round(period.clip(-1, 1) * 32767) / 32768
    repeats = -(-num_samples // _AUDIO_PERIOD)
    return np.tile(steps, (1, repeats))[:, :num_samples].astype(np.float32)


def _encode(
    torch: Any, codec: Any, audio: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Codes of the whole frames and by how much each was nearest, both [frames, codebooks]."""
    gaps = []

    def note(quantizer: Any, _inputs: Any, output: Any) -> None:
        """`output[2]`: what was quantised, [1, codebook_dim, frames]."""
        normalised = torch.nn.functional.normalize
        vectors = normalised(output[2][0].T)
        distances = 2 - 2 * vectors @ normalised(quantizer.codebook.weight).T
        nearest = distances.topk(2, largest=False).values
        gaps.append((nearest[:, 1] - nearest[:, 0]).numpy())

    hooks = [quantizer.register_forward_hook(note) for quantizer in codec.quantizer.quantizers]
    encoded = codec.batch_encode([torch.from_numpy(audio)])
    for hook in hooks:
        hook.remove()
    whole = int(encoded.audio_codes_lengths[0])
    codes = encoded.audio_codes[:, 0, :whole].numpy().T.astype(np.int32)
    return codes, np.stack(gaps, axis=1)[:whole].astype(np.float32)
