"""`mosstalk design`: voices from a description, to choose from and to keep."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from mosstalk.audio.target import write_failure
from mosstalk.checkpoint.hub import BUILT_IN
from mosstalk.cli.model_arguments import add_model_arguments, open_speaker
from mosstalk.cli.progress import tell, warn
from mosstalk.design import Candidate
from mosstalk.engine import Speaker, load
from mosstalk.errors import OutputError, UsageError
from mosstalk.types import SpeechSettings, Voice
from mosstalk.voices import VoiceStore

_DEFAULT_MODEL = "voicegen"
_DEFAULT_OUT = Path("design")
_DEFAULT_COUNT = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk design`."""
    parser.add_argument("description", metavar="DESCRIPTION", help="how the voice sounds")
    parser.add_argument("--text", required=True, help="what the voices say; 5 to 30 s of speech")
    parser.add_argument(
        "--count",
        type=int,
        metavar="N",
        help=f"voices to make (default: {_DEFAULT_COUNT}, with --save 1)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the first; the others count on")
    parser.add_argument("--language", metavar="L", help="of the text, as a code or English name")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help=f"folder for 1.wav, 1.json ... (default: {_DEFAULT_OUT}, with --save none)",
    )
    parser.add_argument("--save", metavar="NAME", help="keep the voice under this name")
    parser.add_argument(
        "--voice-model",
        default=BUILT_IN,
        metavar="M",
        help=f"model that will speak with the saved voice (default: {BUILT_IN})",
    )
    parser.add_argument(
        "--replace", action="store_true", help="take the place of a voice so called"
    )
    parser.add_argument("--max-frames", type=int, metavar="N", help="cap on each voice's speech")
    parser.add_argument("--temperature", type=float, metavar="X", help="0: the likeliest always")
    parser.add_argument(
        "--force-audio-start", action="store_true", help="leave no choice but to start with speech"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_model_arguments(parser, _DEFAULT_MODEL)


def run(args: argparse.Namespace) -> int:
    """Make the voices and keep what is to be kept; raises MosstalkError."""
    count = args.count or (1 if args.save else _DEFAULT_COUNT)
    if count < 1 or args.count == 0:
        raise UsageError(f"count is {args.count}, but must be at least 1")
    if args.save is not None:
        if count > 1:
            raise UsageError(
                "--save keeps one voice; leave --count out, or use `voices add --from`"
            )
        VoiceStore().check_free(args.save, replace=args.replace)
    folder = args.out or (None if args.save else _DEFAULT_OUT)
    if folder is not None:
        _make(folder)
    speaker = open_speaker(args)
    made = list(_candidates(speaker, args, count, folder))
    spoken = [candidate for candidate, _ in made if candidate.stop_reason != "no_audio"]
    if not spoken:
        raise OutputError(f"no audio came of {count} seeds; try other words or --force-audio-start")
    voice = _save(args, spoken[0]) if args.save is not None else None
    if args.json:
        about = [_about(candidate, path) for candidate, path in made]
        values = {"candidates": about, "voice": voice and voice.name}
        print(json.dumps({**values, "warnings": list(speaker.warnings)}))
    return 0


def _candidates(
    speaker: Speaker, args: argparse.Namespace, count: int, folder: Path | None
) -> Iterator[tuple[Candidate, Path | None]]:
    """Each as it is made, written where it has a folder and audio."""
    settings: SpeechSettings = {
        "seed": args.seed,
        "language": args.language,
        "max_frames": args.max_frames,
        "temperature": args.temperature,
        "force_audio_start": args.force_audio_start,
    }
    found = speaker.design(args.description, args.text, count, **settings)
    for number, candidate in enumerate(found, start=1):
        seed = candidate.origin.seed
        if candidate.stop_reason == "no_audio":
            warn(f"seed {seed} gave no audio, begun again {candidate.retries} times")
            yield candidate, None
            continue
        path = None
        if folder is not None:
            path = folder / f"{number}.wav"
            candidate.write(path)
        tell(f"{path or args.save}: {candidate.audio.seconds:.2f} s of audio, seed {seed}")
        yield candidate, path


def _save(args: argparse.Namespace, candidate: Candidate) -> Voice:
    speaker = load(args.voice_model, device=args.device, threads=args.threads, strict=args.strict)
    voice, warnings = speaker.adopt(args.save, candidate)
    for warning in warnings:
        warn(warning)
    path = speaker.voices.save(voice, replace=args.replace)
    tell(f"{args.save}: {len(voice.codes)} frames, saved as {path}")
    return voice


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_failure(folder, error) from error


def _about(candidate: Candidate, path: Path | None) -> dict[str, object]:
    return {
        "out": None if path is None else str(path),
        "seed": candidate.origin.seed,
        "seconds": candidate.audio.seconds,
        "stop_reason": candidate.stop_reason,
        "retries": candidate.retries,
    }
