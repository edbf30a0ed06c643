"""Prompts against those that the original built (tests/golden), and against their fingerprints."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nano_models import GREEDY, Ints, frames_of, load_arrays, load_golden, started
from numpy.typing import NDArray

from mosstalk.checkpoint.json_file import parse_object
from mosstalk.compute.backend import open_backend
from mosstalk.models.moss_tts_nano.config import parse_config
from mosstalk.models.moss_tts_nano.frame_decoder import FrameSampling
from mosstalk.models.moss_tts_nano.prompt import PromptBuilder
from mosstalk.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def builder(golden_dir: Path) -> PromptBuilder:
    folder = golden_dir / "checkpoints" / "nano_c"
    config = parse_config(parse_object((folder / "config.json").read_bytes(), "config.json"))
    return PromptBuilder(config, Tokenizer((folder / "tokenizer.model").read_bytes()))


@pytest.fixture(scope="module")
def arrays(golden_dir: Path) -> Mapping[str, NDArray[Any]]:
    return load_arrays(golden_dir, "nano_c")


def test_golden_prompts_without_voice(
    builder: PromptBuilder, arrays: Mapping[str, NDArray[Any]]
) -> None:
    plain = builder.plain("Hello world, this is MOSS.").rows
    assert np.array_equal(plain, arrays["prompt_plain_rows"][0])
    assert np.array_equal(builder.plain("你好，模思智能。").rows, arrays["prompt_zh_rows"][0])


def test_golden_prompt_of_a_cloned_voice(
    builder: PromptBuilder, arrays: Mapping[str, NDArray[Any]]
) -> None:
    wanted = arrays["prompt_clone_rows"][0]
    voice = wanted[wanted[:, 0] == 8, 1:].astype(np.int32)
    assert len(voice) == 7
    assert np.array_equal(builder.clone("Hello world, this is MOSS.", voice).rows, wanted)


def test_golden_prompt_that_continues_a_recording(
    builder: PromptBuilder, arrays: Mapping[str, NDArray[Any]]
) -> None:
    wanted = arrays["prompt_cont_rows"][0]
    spoken = wanted[wanted[:, 0] == 9, 1:].astype(np.int32)
    assert len(spoken) == 7
    found = builder.continuation("and then he left.", spoken, "He came, ").rows
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("kind", ["plain", "zh", "cont", "clone"])
def test_golden_ids_after_prompts_of_text(golden_dir: Path, kind: str, backend: str) -> None:
    golden = load_golden(golden_dir, "nano_c")
    rows = golden.rows(f"prompt_{kind}_rows")
    wanted = golden.arrays[f"prompt_{kind}_ids"][0]
    stops = len(golden.arrays[f"prompt_{kind}_text_logits"]) == len(wanted) + 1
    session = started(golden.model(open_backend(backend)), rows, len(rows) + 8)
    sampling = FrameSampling(GREEDY, GREEDY, seed=0)
    found, stopped = frames_of(session, sampling, len(wanted) + stops)
    assert np.array_equal(found, wanted)
    assert stopped == stops


def _fingerprint(rows: Ints) -> str:
    return sha256(rows.astype("<i8").tobytes()).hexdigest()


def test_fingerprints_of_prompts(builder: PromptBuilder) -> None:
    """Spec nano.md 4.3."""
    codes = (16 * np.arange(3)[:, None] + np.arange(16)).astype(np.int32) % 1024
    prompts = {
        "3937c3ec15d45ac6928a436e27b49cb30921f24dd2b7fb51c7fd11e4dedc4806": builder.plain(""),
        "173f726ba867e55f3eb7443759d5fe7b3554c70339b64c89935b4825727d4fa3": builder.plain("你好"),
        "50db1154fdbe005d8352204e16c8b946792dcacefb5e79656001248f3d9cc78c": builder.plain(
            "Hello world."
        ),
        "1d447311039ac96874e6fed00d146f7ecb8563744f6f6bbe187aa58f66032138": builder.clone(
            "Hello world.", codes
        ),
        "1eda10085a2c34b18360ee8d558167d756ec4fa891da46adb3576cb211f7f3e5": builder.continuation(
            "Hello world.", codes, "Hi there. "
        ),
    }
    assert [_fingerprint(prompt.rows) for prompt in prompts.values()] == list(prompts)


def test_the_shared_part_of_prompts_does_not_depend_on_the_text(builder: PromptBuilder) -> None:
    codes = np.zeros((3, 16), np.int32)
    for build in (builder.plain, lambda text: builder.clone(text, codes)):
        one, other = build("One text."), build("Quite another text!")
        assert one.num_shared == other.num_shared > 60
        assert np.array_equal(one.rows[: one.num_shared], other.rows[: one.num_shared])


def test_a_voice_of_fewer_codebooks_leaves_the_others_empty(builder: PromptBuilder) -> None:
    rows = builder.clone("Hello.", np.ones((2, 3), np.int32)).rows
    voice = rows[rows[:, 0] == 8]
    assert (voice[:, 1:4] == 1).all() and (voice[:, 4:] == 1024).all()
