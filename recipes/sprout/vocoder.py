"""A vocoder whose excitation is locked to the 80 ms frame, so that a small codec can learn it.

A codec as small as sprout's cannot spend bits on where a pitch pulse falls or on how noise happens
to wiggle. Here neither carries information: every 80 ms frame holds a whole number of pitch
periods, starting with a pulse, and the noise is the same 80 ms every time. The waveform is then a
function of spectrum, voicing and the number of periods alone. The cost: pitch moves in steps of
12.5 Hz.
"""

import numpy as np
import scipy.fft
from flite import STEP_SECONDS, SpeechParameters
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
FRAME_LEN = 1280  # 80 ms
STEP_LEN = int(STEP_SECONDS * SAMPLE_RATE)
STEPS_PER_FRAME = FRAME_LEN // STEP_LEN
FFT_LEN = 1024
ALL_PASS = 0.42  # the frequency warping of flite's mel-cepstra at 16 kHz
SHARPEN = 1.4  # over-smoothed parameters blur the formants; PocketSphinx hears this best
GAIN = 1 / 32_000  # flite's parameters are scaled for 16-bit samples
LEAD_STEPS, TAIL_STEPS = 12, 24  # 60 ms of silence kept before speech, 120 ms after
SILENCE_BELOW = 3.0  # first mel-cepstral coefficient (log gain) of the quietest speech
PERIODS_HYSTERESIS = 0.75

_omega = np.pi * np.arange(FFT_LEN // 2 + 1) / (FFT_LEN // 2)
_warped = _omega + 2 * np.arctan2(ALL_PASS * np.sin(_omega), 1 - ALL_PASS * np.cos(_omega))
_CEPSTRUM = np.exp(-1j * np.outer(np.arange(25), _warped)).astype(np.complex64)
_DELAY = (-1j * _omega).astype(np.complex64)
_BAND_CENTRES_HZ = np.array([500, 1500, 3000, 5000, 7000])
_FREQUENCIES_HZ = _omega / np.pi * SAMPLE_RATE / 2
_NOISE = np.random.default_rng(3).standard_normal(FRAME_LEN).astype(np.float32)


def trim(speech: SpeechParameters) -> SpeechParameters:
    """Cut outer silence to 60 and 120 ms and fill up to whole frames with the last step."""
    loud = np.flatnonzero(speech.mel_cepstra[:, 0] > SILENCE_BELOW)
    first, last = loud[0], loud[-1]
    steps = np.arange(first - LEAD_STEPS, last + 1 + TAIL_STEPS)
    missing = -len(steps) % STEPS_PER_FRAME
    steps = np.concatenate([steps, np.full(missing, steps[-1])])
    return speech[steps.clip(0, len(speech) - 1)]


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
    return np.array(periods)


def render(speech: SpeechParameters) -> NDArray[np.float32]:
    """The waveform of whole frames of parameters: [steps * 80] samples, 16 kHz, about +-0.8."""
    num_steps = len(speech)
    cepstra = speech.mel_cepstra.copy()
    cepstra[:, 2:] *= SHARPEN
    response = np.exp(cepstra @ _CEPSTRUM)  # minimum phase, [steps, bins]
    voicing = np.where((speech.f0_hz > 0)[:, None], _by_frequency(speech.voicing), 0.0)
    voicing = voicing.astype(np.float32)

    out = np.zeros(num_steps * STEP_LEN + FFT_LEN, np.float32)
    noise = np.tile(_NOISE, num_steps // STEPS_PER_FRAME).reshape(num_steps, STEP_LEN)
    spectrum = scipy.fft.rfft(noise, FFT_LEN) * response * (1 - voicing)
    _overlap_add(out, np.arange(num_steps) * STEP_LEN, spectrum)

    positions, gains = [], []
    for frame, periods in enumerate(periods_per_frame(speech.f0_hz)):
        period_len = FRAME_LEN / periods
        positions.append(frame * FRAME_LEN + np.arange(periods) * period_len)
        gains.append(np.full(periods, np.sqrt(period_len)))
    position, gain = np.concatenate(positions), np.concatenate(gains).astype(np.float32)
    step = (position // STEP_LEN).astype(int)
    pulse = speech.f0_hz[step] > 0
    position, gain, step = position[pulse], gain[pulse], step[pulse]
    whole = position.astype(int)
    part = (position - whole).astype(np.float32)
    spectrum = response[step] * voicing[step] * np.exp(part[:, None] * _DELAY) * gain[:, None]
    _overlap_add(out, whole, spectrum)
    return out[: num_steps * STEP_LEN] * np.float32(GAIN)


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
