"""`mosstalk parity streams`: all checks on one model."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from mosstalk.errors import UsageError
from mosstalk.parity.comparison import CheckResult, Comparison, Expectation
from mosstalk.parity.figure import Table
from mosstalk.parity.opening import Opened, Setting
from mosstalk.parity.report import Report
from mosstalk.parity.streams import sessions, speaker
from mosstalk.parity.streams.requests import Request, draw_prompts, most_rows
from mosstalk.parity.streams.subject import Subject
from mosstalk.parity.streams.talk import Parts
from mosstalk.types import Voice

MIN_STREAMS = 2
_GROUPS = (1, 2, 3)  # frames of a codec call

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user can choose. `tolerance` None: AUTO_TOLERANCE of the device.

    Raises UsageError for a value outside its range.
    """

    tolerance: float | None = None
    streams: int = 6
    frames: int = 24
    seed: int = 0

    def __post_init__(self) -> None:
        if self.streams < MIN_STREAMS:
            raise UsageError(f"streams is {self.streams}, but must be at least {MIN_STREAMS}")
        if self.frames < 1:
            raise UsageError(f"frames is {self.frames}, but must be at least 1")
        if not 0 <= self.seed < 2**62:
            raise UsageError(f"the seed is {self.seed}, but must be from 0 to 2^62 - 1")
        if self.tolerance is not None and not 0 <= self.tolerance < np.inf:
            raise UsageError(f"tolerance is {self.tolerance}, but must be 0 or more")


@dataclass(frozen=True, slots=True)
class _Check(Generic[S]):
    name: str
    compare: Callable[[S, Comparison], None]
    expects: Expectation = "equal"
    needs_model: bool = False


_SESSIONS = (
    _Check("interleaved", sessions.check_interleaved),
    _Check("one starts late", sessions.check_late),
    _Check("one cancelled", sessions.check_cancelled),
    _Check("session used again", sessions.check_used_again, needs_model=True),
    _Check("requests must differ", sessions.check_requests_differ, "differ"),
    _Check("other seed must differ", sessions.check_seed, "differ", needs_model=True),
)
_SPEAKER = (
    _Check("speaker, interleaved", speaker.check_interleaved),
    _Check("speaker, one starts late", speaker.check_late),
    _Check("speaker, one closed", speaker.check_cancelled),
    _Check("speaker, other seed must differ", speaker.check_seed, "differ"),
)


def run_streams(opened: Opened, options: Options) -> Report:
    """Run every check that applies to what the checkpoint holds, and its device.

    Sessions and codec streams are advanced turn by turn; where the checkpoint can speak a text,
    streams of the engine take turns too. Raises UsageError for options that the model cannot
    follow, or a model of which none applies.
    """
    tolerance = opened.tolerance(options.tolerance)
    parts = _parts(opened)
    requests = _requests(parts, options)
    subject = Subject(parts, requests, parts.turns_for(options.frames), options.seed)
    checks = [check for check in _SESSIONS if parts.model or not check.needs_model]
    results = list(_results(checks, subject, tolerance))
    tables = [_sessions_table(requests)]
    if _can_speak(opened):
        choice = replace(opened.choice, weight_type=str(opened.storage))
        asked = speaker.make_subject(
            choice.speaker(), options.streams, options.frames, options.seed
        )
        results += _results(_SPEAKER, asked, tolerance)
        tables.append(_speaker_table(asked))
    settings: dict[str, Setting] = {
        **opened.settings,
        "streams": options.streams,
        "frames": options.frames,
        "seed": options.seed,
        "tolerance": tolerance,
    }
    return Report("streams", settings, tuple(results), tuple(tables))


def _parts(opened: Opened) -> Parts:
    """What sessions run on."""
    return Parts(
        opened.language_model() if opened.has_language_model else None,
        opened.codec() if opened.has_codec else None,
    )


def _can_speak(opened: Opened) -> bool:
    checkpoint = opened.checkpoint
    has_tokenizer = checkpoint.tokenizer_model is not None or checkpoint.tokenizer_json is not None
    return opened.has_language_model and opened.has_codec and has_tokenizer


def _requests(parts: Parts, options: Options) -> tuple[Request, ...]:
    count = options.streams
    groups = [_GROUPS[i % len(_GROUPS)] for i in range(count)]
    if parts.model is None:
        assert parts.codec is not None
        config = parts.codec.config
        shape = (count, options.frames, config.num_codebooks)
        generator = np.random.default_rng((options.seed, 3))
        codes = generator.integers(config.codebook_size, size=shape, dtype=np.int32)
        return tuple(
            Request(f"request {i}", group, None, given)
            for i, (group, given) in enumerate(zip(groups, codes, strict=True))
        )
    longest = parts.model.max_positions
    if most_rows() + parts.turns_for(options.frames) > longest:
        raise UsageError(
            f"prompts of up to {most_rows()} rows and {options.frames} frames are more than the "
            f"model's {longest} positions; lower --frames"
        )
    prompts = draw_prompts(parts.model, count, options.seed)
    return tuple(
        Request(f"request {i}", group, prompt, None)
        for i, (group, prompt) in enumerate(zip(groups, prompts, strict=True))
    )


def _results(checks: Iterable[_Check[S]], subject: S, tolerance: float) -> Iterator[CheckResult]:
    """In the order of the table."""
    for check in checks:
        comparison = Comparison(check.name, tolerance, check.expects)
        try:
            check.compare(subject, comparison)
        except UsageError:
            raise
        except Exception as error:  # an engine that breaks down under a check has failed it
            comparison.fail(f"{type(error).__name__}: {' '.join(str(error).split())}")
        yield comparison.result()


def _sessions_table(requests: tuple[Request, ...]) -> Table:
    rows = tuple(
        (
            request.name,
            str(len(request.prompt.rows) if request.prompt else 0),
            "yes" if request.prompt and request.prompt.shares_prefix else "no",
            str(request.group),
            request.sampling,
        )
        for request in requests
    )
    header = ("request", "prompt rows", "of a voice", "frames a codec call", "codes")
    return Table("Requests on sessions and codec streams", header, rows)


def _speaker_table(subject: speaker.Subject) -> Table:
    rows = tuple(
        (
            asked.name,
            str(len(asked.text)),
            "yes" if isinstance(asked.voice, Voice) else "no",
            f"{subject.seconds(i):.2f}",
            "greedy" if asked.settings.get("temperature") == 0 else "sampled",
        )
        for i, asked in enumerate(subject.asked)
    )
    header = ("stream", "characters", "with a voice", "seconds heard", "codes")
    return Table("Requests to the engine", header, rows)
