"""What PocketSphinx hears in speech, and how much of it is wrong."""

import re

import numpy as np
from numpy.typing import NDArray
from pocketsphinx import Decoder

LEAD_LEN, TAIL_LEN = 3200, 4800  # 200 and 300 ms of near silence around the speech


class Judge:
    def __init__(self) -> None:
        self._decoder = Decoder(samprate=16_000, loglevel="FATAL")

    def hear(self, samples: NDArray[np.float32]) -> str:
        """The words heard in `samples` at 16 kHz, brought to a level of 0.6."""
        level = max(float(np.abs(samples).max(initial=0.0)), 1e-3)
        padded = np.pad(samples * (0.6 / level), (LEAD_LEN, TAIL_LEN))
        padded = padded + np.random.default_rng(0).normal(0, 1e-3, len(padded))
        self._decoder.start_utt()
        pcm = (padded * 32767).clip(-32768, 32767).astype(np.int16)
        self._decoder.process_raw(pcm.tobytes(), full_utt=True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        return found.hypstr if found else ""


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def word_errors(text: str, heard: str) -> int:
    """Words replaced, left out or put in: the edit distance of the two as words."""
    said, understood = words(text), words(heard)
    row = list(range(len(understood) + 1))
    for i, word in enumerate(said, 1):
        above, row = row, [i]
        for j, other in enumerate(understood, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != other)))
    return row[-1]
