"""Speech parameters from Debian's libflite: what the clustergen voices predict before synthesis.

flite (BSD-style licence) predicts, every 5 ms, a fundamental frequency, 25 mel-cepstral
coefficients and 5 band voicing strengths, and it knows where each phone ends. The recipe takes
those instead of flite's waveform, so that `vocoder.py` can set its own timing and excitation.
"""

import ctypes as c
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STEP_SECONDS = 0.005
NUM_MEL_CEPSTRA = 25
NUM_BANDS = 5


@dataclass(frozen=True)
class SpeechParameters:
    """One utterance, a row every 5 ms."""

    f0_hz: NDArray[np.float32]  # [steps], 0 where unvoiced
    mel_cepstra: NDArray[np.float32]  # [steps, 25]
    voicing: NDArray[np.float32]  # [steps, 5], 0 to 1 by band
    phones: tuple[str, ...] = ()
    phone_ends: tuple[int, ...] = ()  # in steps

    def __len__(self) -> int:
        return len(self.f0_hz)

    def __getitem__(self, steps: slice | NDArray[np.intp]) -> "SpeechParameters":
        return SpeechParameters(self.f0_hz[steps], self.mel_cepstra[steps], self.voicing[steps])


class _Track(c.Structure):
    _fields_ = [
        ("type", c.c_char_p),
        ("num_frames", c.c_int),
        ("num_channels", c.c_int),
        ("times", c.POINTER(c.c_float)),
        ("frames", c.POINTER(c.POINTER(c.c_float))),
    ]


class _Utterance(c.Structure):
    _fields_ = [
        ("features", c.c_void_p),
        ("ffunctions", c.c_void_p),
        ("relations", c.c_void_p),
        ("context", c.c_void_p),
    ]


class _Voice(c.Structure):
    _fields_ = [("name", c.c_char_p), ("features", c.c_void_p)]


_Heard = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_int, c.c_int, c.c_void_p)
_STOP = 1


class _Streaming(c.Structure):
    _fields_ = [("min_samples", c.c_int), ("heard", _Heard), ("rest", c.c_void_p * 3)]


class Flite:
    """One voice of libflite; not to be shared between threads."""

    def __init__(self, voice: str = "slt") -> None:
        self._lib = lib = c.CDLL("libflite.so.1", mode=c.RTLD_GLOBAL)
        for name in ("usenglish", "cmulex"):
            c.CDLL(f"libflite_{name}.so.1", mode=c.RTLD_GLOBAL)
        self._voice_lib = c.CDLL(f"libflite_cmu_us_{voice}.so.1", mode=c.RTLD_GLOBAL)
        lib.feat_val.argtypes, lib.feat_val.restype = [c.c_void_p, c.c_char_p], c.c_void_p
        lib.val_track.argtypes, lib.val_track.restype = [c.c_void_p], c.POINTER(_Track)
        lib.val_cg_db.argtypes, lib.val_cg_db.restype = [c.c_void_p], c.c_void_p
        lib.mlpg.argtypes, lib.mlpg.restype = [c.c_void_p, c.c_void_p], c.POINTER(_Track)
        lib.utt_relation.argtypes, lib.utt_relation.restype = [c.c_void_p, c.c_char_p], c.c_void_p
        lib.relation_head.argtypes, lib.relation_head.restype = [c.c_void_p], c.c_void_p
        lib.item_next.argtypes, lib.item_next.restype = [c.c_void_p], c.c_void_p
        lib.item_feat_string.argtypes = lib.item_feat_float.argtypes = [c.c_void_p, c.c_char_p]
        lib.item_feat_string.restype, lib.item_feat_float.restype = c.c_char_p, c.c_float
        lib.delete_track.argtypes = lib.delete_utterance.argtypes = [c.c_void_p]
        lib.flite_synth_text.argtypes = [c.c_char_p, c.c_void_p]
        lib.flite_synth_text.restype = c.POINTER(_Utterance)
        lib.flite_init()
        register = self._voice_lib[f"register_cmu_us_{voice}"]
        register.restype = c.c_void_p
        self._voice = c.c_void_p(register(None))
        self._stop_after_parameters()

    def _stop_after_parameters(self) -> None:
        """Break the waveform off at its first sample, through flite's streaming: half the work."""
        lib = self._lib
        lib.new_audio_streaming_info.restype = c.POINTER(_Streaming)
        lib.audio_streaming_info_val.argtypes = [c.c_void_p]
        lib.audio_streaming_info_val.restype = c.c_void_p
        lib.feat_set.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
        self._heard = _Heard(lambda *_: _STOP)
        streaming = lib.new_audio_streaming_info()
        streaming.contents.min_samples, streaming.contents.heard = 1, self._heard
        features = c.cast(self._voice, c.POINTER(_Voice)).contents.features
        lib.feat_set(features, b"streaming_info", lib.audio_streaming_info_val(streaming))

    def parameters(self, text: str) -> SpeechParameters:
        """The predicted parameters of `text`, spoken as one utterance."""
        lib = self._lib
        utterance = lib.flite_synth_text(text.encode("ascii"), self._voice)
        features = utterance.contents.features
        predicted = lib.val_track(lib.feat_val(features, b"param_track"))
        database = lib.val_cg_db(lib.feat_val(features, b"cg_db"))
        smooth = lib.mlpg(predicted, database)
        track = _rows(smooth)  # [steps, f0 and 25 coefficients]
        voicing = _rows(lib.val_track(lib.feat_val(features, b"str_track")))
        names, ends = self._phones(utterance)
        lib.delete_track(smooth)
        lib.delete_utterance(utterance)
        return SpeechParameters(track[:, 0], track[:, 1:], voicing, names, ends)

    def _phones(self, utterance: "c._Pointer[_Utterance]") -> tuple[tuple[str, ...], ...]:
        lib = self._lib
        names, ends = [], []
        item = lib.relation_head(lib.utt_relation(utterance, b"Segment"))
        while item:
            names.append(lib.item_feat_string(item, b"name").decode())
            ends.append(round(lib.item_feat_float(item, b"end") / STEP_SECONDS))
            item = lib.item_next(item)
        return tuple(names), tuple(ends)


def _rows(track: "c._Pointer[_Track]") -> NDArray[np.float32]:
    t = track.contents
    row_bytes = t.num_channels * c.sizeof(c.c_float)
    rows = b"".join(c.string_at(t.frames[i], row_bytes) for i in range(t.num_frames))
    return np.frombuffer(rows, np.float32).reshape(t.num_frames, t.num_channels)
