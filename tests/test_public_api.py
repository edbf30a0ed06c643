"""What `import mosstalk` promises: names, signatures, and no side effects."""

import inspect
import json
import subprocess
import sys
from dataclasses import fields

import mosstalk

_NAMES = [
    "AudioChunk",
    "AudioClip",
    "AudioError",
    "BusyError",
    "Candidate",
    "CheckpointError",
    "DeviceError",
    "DownloadError",
    "MosstalkError",
    "OutputError",
    "ScheduledStream",
    "Scheduler",
    "SchedulerStats",
    "Speaker",
    "SpeechOptions",
    "SpeechStream",
    "Speech",
    "Summary",
    "TimeLimitError",
    "UsageError",
    "Voice",
    "VoiceOrigin",
    "load",
]
_ERRORS = {
    "AudioError": 1,
    "BusyError": 1,
    "CheckpointError": 1,
    "DeviceError": 1,
    "DownloadError": 1,
    "MosstalkError": 1,
    "OutputError": 1,
    "TimeLimitError": 1,
    "UsageError": 2,
}
# Run in a fresh interpreter: what importing changes in the process.
_SIDE_EFFECTS = """
import json, locale, logging, os, signal, sys, threading, warnings
def look():
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "handlers": len(logging.getLogger().handlers),
        "level": logging.getLogger().level,
        "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM)],
        "threads": threading.active_count(),
        "filters": len(warnings.filters),
        "tasks": len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1,
    }
import numpy  # has threads and filters of its own
before = look()
import mosstalk
after = look()
print(json.dumps([before, after, sorted(m.partition(".")[0] for m in sys.modules)]))
"""


def parameters(function: object) -> dict[str, object]:
    """Names and defaults of a function's parameters, `self` left out."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return {
        name: parameter.default if parameter.default is not parameter.empty else ...
        for name, parameter in signature.parameters.items()
        if name != "self"
    }


def test_all_names() -> None:
    assert mosstalk.__all__ == _NAMES
    for name in _NAMES:
        assert inspect.getdoc(getattr(mosstalk, name)), f"{name} has no docstring"


def test_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert mosstalk.__version__ == version("mosstalk")


def test_load_and_speak_signatures() -> None:
    assert parameters(mosstalk.load) == {
        "model": "sprout",
        "device": "cpu",
        "threads": 0,
        "weight_type": "native",
        "codec": None,
        "strict": False,
    }
    speech = {"text": ..., "voice": None, "options": ...}
    assert parameters(mosstalk.Speaker.say) == speech
    assert parameters(mosstalk.Speaker.stream) == speech
    assert parameters(mosstalk.Speaker.make_voice) == {
        "name": ...,
        "source": ...,
        "transcript": None,
    }
    assert parameters(mosstalk.Speaker.hear) == {"voice": ...}


def test_options_are_the_settings() -> None:
    from mosstalk.types import SpeechSettings

    names = [field.name for field in fields(mosstalk.SpeechOptions)]
    assert names == [
        "seed",
        "temperature",
        "top_k",
        "top_p",
        "repetition_penalty",
        "max_frames",
        "max_tokens",
        "num_codebooks",
        "mode",
        "instruction",
        "language",
        "force_audio_start",
        "normalize",
        "dictionary",
    ]
    assert list(SpeechSettings.__annotations__) == names


def test_results_have_their_fields() -> None:
    assert [field.name for field in fields(mosstalk.AudioChunk)] == [
        "samples",
        "sample_rate",
        "text_chunk",
        "is_pause",
    ]
    assert [field.name for field in fields(mosstalk.Summary)] == [
        "seed",
        "frames",
        "seconds",
        "stop_reason",
        "rtf",
        "ttfa_ms",
        "device",
        "weight_type",
        "retries",
        "warnings",
    ]
    for name in ("samples", "sample_rate", "summary", "write"):
        assert name in dir(mosstalk.Speech)
    for name in ("close", "summary", "__iter__", "__next__", "__enter__", "__exit__"):
        assert name in dir(mosstalk.SpeechStream)


def test_errors_are_one_family() -> None:
    for name, exit_status in _ERRORS.items():
        error = getattr(mosstalk, name)
        assert issubclass(error, mosstalk.MosstalkError)
        assert error.exit_status == exit_status


def test_import_changes_nothing_and_loads_little() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _SIDE_EFFECTS], capture_output=True, timeout=60, check=True
    )
    before, after, modules = json.loads(run.stdout)
    assert after == before
    assert not {"torch", "huggingface_hub", "gguf", "requests", "argparse"} & set(modules)
    assert run.stderr == b""
