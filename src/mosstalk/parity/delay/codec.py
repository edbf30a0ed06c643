"""The codec against the file of a dump."""

from functools import partial
from pathlib import Path

import numpy as np

from mosstalk.codec.moss_audio_tokenizer.codec import MossAudioTokenizer
from mosstalk.errors import CheckpointError
from mosstalk.parity.comparison import Comparison
from mosstalk.parity.delay.files import CodecFile, probe_codes, read_codec
from mosstalk.parity.delay.subject import Check
from mosstalk.parity.opening import Opened
from mosstalk.parity.reference.tolerance import tolerances_for


def codec_check(opened: Opened, path: Path, tolerance: float | None) -> Check:
    """Raises UsageError for a model without codec, CheckpointError for a file that is damaged or
    of another codec."""
    file, codec = read_codec(path), opened.codec()
    found = opened.checkpoint.identity
    if file.origin is not None and file.origin.codec_identity != found:
        raise CheckpointError(
            f"{path} is of another codec ({file.origin.codec_identity}) than that of "
            f"{opened.checkpoint.path} ({found}); make a dump of this one"
        )
    if file.codebooks > codec.num_codebooks:
        raise CheckpointError(
            f"{path} has {file.codebooks} codebooks, but the codec {codec.num_codebooks}"
        )
    most = tolerances_for(opened, file.origin, tolerance).codec
    return Check("codec: codes to audio", most, partial(_compare, codec, file))


def _compare(codec: MossAudioTokenizer, file: CodecFile, comparison: Comparison) -> None:
    """Some samples, the largest and the root of the mean square of all."""
    codes = probe_codes(file.frames, file.codebooks, codec.config.codebook_size)
    audio = codec.start(file.frames)(codes)[0]
    comparison.require(len(audio) == file.samples, f"{len(audio)} samples, not {file.samples}")
    comparison.add("samples", file.probe_values, audio[file.probe_index])
    rms = np.sqrt(np.square(audio, dtype=np.float64).mean())
    comparison.add("peak", np.array([file.peak]), np.array([np.abs(audio).max()]))
    comparison.add("rms", np.array([file.rms]), np.array([rms]))
