"""A dump of the delay family: a folder of files (`files.py`)."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosstalk.checkpoint.atomic import new_folder
from mosstalk.errors import CheckpointError, UsageError
from mosstalk.models.moss_tts_delay.config import DelayConfig
from mosstalk.parity.comparison import CheckResult, Comparison
from mosstalk.parity.delay import files
from mosstalk.parity.delay.ask import OriginalModel, ask_codec
from mosstalk.parity.delay.files import PromptFile
from mosstalk.parity.delay.run import config_of
from mosstalk.parity.family.delay import delay_layout
from mosstalk.parity.family.random_rows import random_rows
from mosstalk.parity.opening import Setting
from mosstalk.parity.reference.origin import origin_of
from mosstalk.parity.reference.original import DELAY_LIBRARIES, original_code
from mosstalk.parity.reference.request import DumpOptions, Source
from mosstalk.parity.report import Report

# Without a full stop: template and text are then one string to the tokeniser, or else show it.
DEFAULT_TEXT = "Rain fell on the roof all night, and by morning the garden was green"
DEFAULT_INSTRUCTION = "A warm, low, unhurried woman's voice."
_PENALTY = 1.1  # of VoiceGenerator and TTSD
_RANDOM_ROWS = 48
# Step by step over its cache against a whole pass, relative to the largest value.
_OWN_TOLERANCE = 1e-5


def write_delay_dump(source: Source, out: Path, options: DumpOptions) -> Report:
    """Write the folder `out`, which must be new or empty; see `write_dump`.

    There is one prompt. Without a tokeniser its rows are random ones.
    """
    config = config_of(source.checkpoint)
    has_tokenizer = source.checkpoint.tokenizer_json is not None
    text = _text(source, options)
    results: list[CheckResult] = []
    with original_code(DELAY_LIBRARIES) as original, new_folder(out) as folder:
        model = OriginalModel(original, source, config)
        origin = origin_of(source.checkpoint, source.codec_folder, original.versions, options.seed)
        instruction = options.instruction or DEFAULT_INSTRUCTION if text else None
        if text is not None:
            rows = model.prompt_rows(text, instruction, options.language)
        else:
            rows = random_rows(delay_layout(config), _RANDOM_ROWS, options.seed)
        prompt = PromptFile(
            "speech" if text else "random rows", text, instruction, options.language, rows, None
        )
        written = {files.PROMPT: prompt.as_values(), files.HIDDEN: model.hidden(prompt).as_values()}
        own = Comparison("steps vs whole pass", _OWN_TOLERANCE)
        begun = _begun(config, rows)
        for name, penalty in ((files.ROWS, 1.0), (files.PENALISED_ROWS, _PENALTY)):
            likeliest = model.likeliest_rows(f"penalty {penalty:g}", begun, penalty, own)
            written[name] = likeliest.as_values()
        results.append(own.result())
        if source.codec_folder is not None:
            codec = original.model(source.codec_folder)
            written[files.CODEC] = ask_codec(original, codec, config.n_vq).as_values()
        for name, values in written.items():
            files.write_file(folder / name, values, origin)
            results.append(_read_again(folder / name, values))
    settings: dict[str, Setting] = {
        "reference": str(source.folder),
        "out": str(out),
        "files": len(written),
        "codec": "no" if source.codec_folder is None else "yes",
        "tokeniser": "yes" if has_tokenizer else "no",
        "rows": len(rows),
        "seed": options.seed,
        "torch": original.versions["torch"],
        "transformers": original.versions["transformers"],
    }
    return Report("dump", settings, tuple(results))


def _text(source: Source, options: DumpOptions) -> str | None:
    """The text of the prompt; None for a checkpoint without a tokeniser."""
    if source.checkpoint.tokenizer_json is None:
        if options.texts or options.instruction or options.language:
            raise UsageError(
                f"{source.folder} has no tokenizer.json; leave text, instruction and language out"
            )
        return None
    if options.texts is None:
        return DEFAULT_TEXT
    if len(options.texts) != 1:
        raise UsageError(f"{len(options.texts)} texts were given, but a dump has one prompt")
    return options.texts[0]


def _begun(config: DelayConfig, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The prompt with audio start behind it, so that there are codes whatever the model is."""
    start = np.full((1, 1 + config.n_vq), config.audio_pad_code, np.int32)
    start[0, 0] = config.audio_start_token_id
    return np.concatenate([rows, start])


_READERS: dict[
    str, Callable[[Path], files.PromptFile | files.HiddenFile | files.RowsFile | files.CodecFile]
] = {
    files.PROMPT: files.read_prompt,
    files.HIDDEN: files.read_hidden,
    files.ROWS: files.read_rows,
    files.PENALISED_ROWS: files.read_rows,
    files.CODEC: files.read_codec,
}


def _read_again(path: Path, values: Mapping[str, object]) -> CheckResult:
    """Whether a file holds what was written, and can be used."""
    comparison = Comparison(f"{path.name} read again", 0.0)
    try:
        found = _READERS[path.name](path).as_values()
    except CheckpointError as error:
        comparison.fail(str(error))
        return comparison.result()
    comparison.add_ids("keys", np.ones(len(values)), np.ones(len(found)))
    for key, value in values.items():
        comparison.require(found[key] == value, f"{key!r} differs")
    return comparison.result()
