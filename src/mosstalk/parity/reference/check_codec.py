"""Our codec against a dump."""

from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.reference.codec_probe import (
    LARGEST_DISTANCE,
    CodecProbe,
    frame_levels,
    sample_probes,
)
from mosstalk.parity.reference.decisions import Agreement


def check_decoding(codec: MossAudioTokenizer, probe: CodecProbe, comparison: Comparison) -> None:
    """Codes to samples: some of them, and the peak and power of every frame."""
    num_frames = len(probe.codes)
    audio = codec.start(num_frames)(probe.codes)
    frames = range(num_frames)
    comparison.add("samples", probe.samples, sample_probes(audio, probe.sample_stride))
    peak, rms = frame_levels(audio, num_frames)
    comparison.add("peak of frames", probe.peak, peak, positions=frames)
    comparison.add("rms of frames", probe.rms, rms, positions=frames)


def check_encoding(
    codec: MossAudioTokenizer, probe: CodecProbe, comparison: Comparison
) -> Agreement:
    """Audio to codes. A codebook quantises what those before it left over, so that of a frame
    nothing is compared after a disagreement."""
    allowed = 2 * comparison.tolerance * LARGEST_DISTANCE
    agreement = Agreement("audio to codes", allowed)
    found = codec.encode(probe.audio)
    if found.shape != probe.audio_codes.shape:
        comparison.fail(f"codes of shape {found.shape}, not {probe.audio_codes.shape}")
        return agreement
    for frame, (expected, codes) in enumerate(zip(probe.audio_codes, found, strict=True)):
        agreement.compare_codes(frame, expected, codes, probe.audio_gaps[frame])
    agreement.judge(comparison)
    return agreement
