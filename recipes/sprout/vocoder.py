"""A vocoder whose excitation is locked to the 80 ms frame, so that a small codec can learn it.

A codec as small as sprout's cannot spend bits on where a pitch pulse falls or on how noise happens
to wiggle. Here neither carries information: every 80 ms frame holds a whole number of pitch
periods, starting with a pulse, and the noise is the same 80 ms every time. The waveform is then a
function of spectrum, voicing and the number of periods alone. The cost: pitch moves in steps of
12.5 Hz. Phones too are locked to the frame, so that a small language model finds its way from
letters to frames. The cost: a syllable-timed, mechanical rhythm.
"""

from dataclasses import dataclass

import numpy as np
import scipy.fft
from flite import NUM_BANDS, NUM_MEL_CEPSTRA, STEP_SECONDS, SpeechParameters
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
FRAME_LEN = 1280  # 80 ms
STEP_LEN = int(STEP_SECONDS * SAMPLE_RATE)
STEPS_PER_FRAME = FRAME_LEN // STEP_LEN
FFT_LEN = 1024
ALL_PASS = 0.42  # the frequency warping of flite's mel-cepstra at 16 kHz
SHARPEN = 1.4  # over-smoothed parameters blur the formants; PocketSphinx hears this best
GAIN = 1 / 32_000  # flite's parameters are scaled for 16-bit samples
LEAD_FRAMES, TAIL_FRAMES = 1, 2  # silence kept before and after speech
MAX_PAUSE_FRAMES, MAX_PHONE_FRAMES = 2, 3
DURATION_SCALE = 0.8  # phones only get longer by rounding up to a frame: this makes up for it
MIN_PERIODS, MAX_PERIODS = 13, 16  # 162 to 200 Hz
PERIODS_HYSTERESIS = 0.75

_omega = np.pi * np.arange(FFT_LEN // 2 + 1) / (FFT_LEN // 2)
_warped = _omega + 2 * np.arctan2(ALL_PASS * np.sin(_omega), 1 - ALL_PASS * np.cos(_omega))
_LOG_SIZE = np.cos(np.outer(np.arange(NUM_MEL_CEPSTRA), _warped)).astype(np.float32)
_PHASE = -np.sin(np.outer(np.arange(NUM_MEL_CEPSTRA), _warped)).astype(np.float32)
_DELAY = -_omega.astype(np.float32)
_BAND_CENTRES_HZ = np.array([500, 1500, 3000, 5000, 7000])
_FREQUENCIES_HZ = _omega / np.pi * SAMPLE_RATE / 2
_NOISE = np.random.default_rng(3).standard_normal(FRAME_LEN).astype(np.float32)


@dataclass(frozen=True)
class FrameParameters:
    """All that the waveform of whole frames depends on."""

    mel_cepstra: NDArray[np.float32]  # [frames, 16, 25]
    voicing: NDArray[np.float32]  # [frames, 16, 5], 0 where unvoiced
    periods: NDArray[np.int64]  # [frames], pitch periods in the frame


def align(speech: SpeechParameters) -> SpeechParameters:
    """Stretch every phone to whole frames: one for most, more for long ones and pauses.

    A frame then belongs to a single phone, and a letter of the text to a frame or two.
    """
    parts, start, last = [], 0, len(speech.phones) - 1
    for i, (phone, end) in enumerate(zip(speech.phones, speech.phone_ends, strict=True)):
        span = end - start
        if phone == "pau" and i in (0, last):
            steps = (LEAD_FRAMES if i == 0 else TAIL_FRAMES) * STEPS_PER_FRAME
            first = end - steps if i == 0 else start
            positions = first + np.arange(steps) + 0.5
        else:
            longest = MAX_PAUSE_FRAMES if phone == "pau" else MAX_PHONE_FRAMES
            frames = round(DURATION_SCALE * span / STEPS_PER_FRAME)
            steps = min(max(frames, 1), longest) * STEPS_PER_FRAME
            positions = start + (np.arange(steps) + 0.5) * span / steps
        parts.append(positions)
        start = end
    chosen = np.concatenate(parts).astype(int).clip(0, len(speech) - 1)
    return speech[chosen]


def periods_per_frame(f0_hz: NDArray[np.float32]) -> NDArray[np.int64]:
    """How many pitch periods each frame holds: its mean frequency, with hysteresis. [frames]"""
    steps = np.arange(len(f0_hz))
    voiced = f0_hz > 0
    line = np.interp(steps, steps[voiced], f0_hz[voiced]) if voiced.any() else f0_hz + 180.0
    means = line.reshape(-1, STEPS_PER_FRAME).mean(axis=1) * (FRAME_LEN / SAMPLE_RATE)
    periods = [round(means[0])]
    for mean in means[1:]:
        stay = abs(mean - periods[-1]) < PERIODS_HYSTERESIS
        periods.append(periods[-1] if stay else round(mean))
    return np.clip(periods, MIN_PERIODS, MAX_PERIODS)


def frame_parameters(speech: SpeechParameters) -> FrameParameters:
    voicing = np.where((speech.f0_hz > 0)[:, None], speech.voicing, 0.0)
    return FrameParameters(
        speech.mel_cepstra.reshape(-1, STEPS_PER_FRAME, NUM_MEL_CEPSTRA),
        voicing.astype(np.float32).reshape(-1, STEPS_PER_FRAME, NUM_BANDS),
        periods_per_frame(speech.f0_hz),
    )


def render(speech: FrameParameters) -> NDArray[np.float32]:
    """The waveform of whole frames of parameters: [frames * 1280] samples, 16 kHz, about +-0.8."""
    num_steps = len(speech.periods) * STEPS_PER_FRAME
    cepstra = speech.mel_cepstra.reshape(num_steps, NUM_MEL_CEPSTRA).astype(np.float32)
    cepstra[:, 2:] *= SHARPEN
    response = np.exp(cepstra @ _LOG_SIZE) * _turn(cepstra @ _PHASE)  # minimum phase, [steps, bins]
    bands = speech.voicing.reshape(num_steps, NUM_BANDS)
    voicing = _by_frequency(bands).astype(np.float32)

    out = np.zeros(num_steps * STEP_LEN + FFT_LEN, np.float32)
    noise = np.tile(_NOISE, len(speech.periods)).reshape(num_steps, STEP_LEN)
    spectrum = scipy.fft.rfft(noise, FFT_LEN) * response * (1 - voicing)
    _overlap_add(out, np.arange(num_steps) * STEP_LEN, spectrum)

    positions, gains = [], []
    for frame, periods in enumerate(speech.periods):
        period_len = FRAME_LEN / periods
        positions.append(frame * FRAME_LEN + np.arange(periods) * period_len)
        gains.append(np.full(periods, np.sqrt(period_len)))
    position, gain = np.concatenate(positions), np.concatenate(gains).astype(np.float32)
    step = (position // STEP_LEN).astype(int)
    pulse = bands[step].max(axis=1) > 0
    position, gain, step = position[pulse], gain[pulse], step[pulse]
    whole = position.astype(int)
    part = (position - whole).astype(np.float32)
    spectrum = response[step] * voicing[step] * _turn(part[:, None] * _DELAY) * gain[:, None]
    _overlap_add(out, whole, spectrum)
    return out[: num_steps * STEP_LEN] * np.float32(GAIN)


def _turn(phase: NDArray[np.float32]) -> NDArray[np.complex64]:
    """exp(i phase), several times as fast as NumPy's complex exp."""
    turned = np.empty(phase.shape, np.complex64)
    turned.real, turned.imag = np.cos(phase), np.sin(phase)
    return turned


def _by_frequency(bands: NDArray[np.float32]) -> NDArray[np.float64]:
    """Band values [steps, 5] as a line over frequency, [steps, bins]."""
    left = np.clip(np.searchsorted(_BAND_CENTRES_HZ, _FREQUENCIES_HZ) - 1, 0, 3)
    span = _BAND_CENTRES_HZ[left + 1] - _BAND_CENTRES_HZ[left]
    t = np.clip((_FREQUENCIES_HZ - _BAND_CENTRES_HZ[left]) / span, 0, 1)
    return bands[:, left] * (1 - t) + bands[:, left + 1] * t


def _overlap_add(
    out: NDArray[np.float32], starts: NDArray[np.int64], spectra: NDArray[np.complex64]
) -> None:
    for start, response in zip(starts, scipy.fft.irfft(spectra, FFT_LEN), strict=True):
        out[start : start + FFT_LEN] += response
