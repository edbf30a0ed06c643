"""`mosstalk say`: a text to a file, a pipe or the loudspeaker, written while it is made."""

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from mosstalk.audio.play import open_player
from mosstalk.audio.write import AudioWriter, check_output, open_writer
from mosstalk.cli.model_arguments import add_model_arguments, open_speaker
from mosstalk.cli.progress import ProgressLine, tell, warn
from mosstalk.engine import Speaker, VoiceChoice
from mosstalk.errors import OutputError, UsageError
from mosstalk.stream import SpeechStream
from mosstalk.text.cleaning import clean_controls
from mosstalk.text.normalise.dictionary import Dictionary, read_dictionary
from mosstalk.text.prepare import prepare
from mosstalk.types import SpeechOptions, SpeechSettings
from mosstalk.voices import NO_VOICE

_DEFAULT_OUT = "mosstalk.wav"
_PIPE = "-"
_MAX_TEXT_BYTES = 16 * 2**20  # a library of novels: more is no text, or never ends


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk say`."""
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("text", nargs="?", metavar="TEXT", help="what to say; - reads standard input")
    text.add_argument("--text-file", metavar="F", help="file of what to say, in UTF-8; or -")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out",
        metavar="F.wav|F.flac|-",
        help=f"file to write, or - for standard output (default: {_DEFAULT_OUT}, unless --play)",
    )
    output.add_argument("--play", action="store_true", help="play the audio while it is made")
    output.add_argument(
        "--json", action="store_true", help="print one JSON object about the result"
    )
    output.add_argument(
        "--show-normalized", action="store_true", help="print the words to be spoken, and stop"
    )
    add_model_arguments(parser)
    _add_voice_arguments(parser.add_argument_group("voice"))
    _add_speech_arguments(parser.add_argument_group("speech"))


def _add_voice_arguments(group: argparse._ArgumentGroup) -> None:
    voice = group.add_mutually_exclusive_group()
    voice.add_argument(
        "--voice",
        metavar="NAME[,NAME ...]",
        help=f"a saved voice, one for each speaker of a dialogue; {NO_VOICE} to go without one",
    )
    voice.add_argument("--voice-ref", metavar="CLIP", help="recording of a voice, for this run")
    group.add_argument(
        "--voice-transcript", metavar="TEXT", help="the words of the voice's recording"
    )
    group.add_argument(
        "--mode",
        default=SpeechOptions().mode,
        help="clone, or continuation: go on after the recording, whose transcript is needed "
        "(default: clone)",
    )


def _add_speech_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--seed", type=int, metavar="N", help="default: another one each time")
    group.add_argument("--temperature", type=float, metavar="X", help="0: the likeliest always")
    group.add_argument("--top-k", type=int, metavar="N", help="0: no limit")
    group.add_argument("--top-p", type=float, metavar="X", help="1: no limit")
    group.add_argument("--repetition-penalty", type=float, metavar="X", help="1: none")
    group.add_argument(
        "--max-frames",
        type=int,
        metavar="N",
        help="cap on each part of the text (default: the model's own)",
    )
    group.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="longest part that a text is divided into; 0: not divided (default: the model's own)",
    )
    group.add_argument("--codebooks", type=int, metavar="N", help="use the first N (default: all)")
    group.add_argument(
        "--instruction", metavar="TEXT", help="how to speak, for models that follow a description"
    )
    group.add_argument(
        "--language", metavar="L", help="of the text: code or English name (default: found out)"
    )
    group.add_argument(
        "--no-normalize",
        action="store_true",
        help="leave numbers, dates, signs and markup as they are written",
    )
    group.add_argument(
        "--dictionary", metavar="F", help=".toml or .json file of words and how they are spoken"
    )
    group.add_argument(
        "--force-audio-start",
        action="store_true",
        help="leave such a model no choice but to start with speech",
    )


def run(args: argparse.Namespace) -> int:
    """Speak, write while speaking, and say what was made; raises MosstalkError."""
    if args.show_normalized:
        return _show_normalized(args)
    out: str | None = args.out
    if out is None and not args.play:
        out = _DEFAULT_OUT
    if out == _PIPE:
        _check_pipe(args.json)
    if out is not None:
        check_output(out)
    text = _read_text(args)
    speaker = open_speaker(args)
    voice, remarks = _choose_voice(speaker, args)
    stream = speaker.stream(text, voice, **_settings(args))
    _deliver(stream, speaker, out, play=args.play)
    _report(stream, out, remarks, len(speaker.warnings), as_json=args.json)
    return 0


def _show_normalized(args: argparse.Namespace) -> int:
    """Print what would be spoken, a line for each part between pauses; no model is opened."""
    options = SpeechOptions(**_settings(args))
    text = _read_text(args)
    if not options.normalize:
        print(text)
        return 0
    words = None if options.dictionary is None else Dictionary(options.dictionary)
    stretches, warnings = prepare(text, clean_controls, options.language, words)
    for warning in warnings:
        warn(warning)
    for stretch in stretches:
        pause = f" [pause {stretch.pause_seconds:g}s]" if stretch.pause_seconds else ""
        print(stretch.text.strip() + pause)
    return 0


def _check_pipe(as_json: bool) -> None:
    if as_json:
        raise UsageError("--json and --out - both want standard output; give --out a file")
    if sys.stdout is None:
        raise UsageError("--out - needs standard output, which is closed; give --out a file")
    if sys.stdout.isatty():
        raise UsageError("--out - would write audio to the terminal; pipe it or give --out a file")


def _read_text(args: argparse.Namespace) -> str:
    source: str | None = args.text_file
    if args.text == _PIPE:
        source = _PIPE
    if source is None:
        text: str = args.text
        return text
    name = "standard input" if source == _PIPE else source
    try:
        if source != _PIPE:
            with Path(source).open("rb") as file:
                data = file.read(_MAX_TEXT_BYTES + 1)
        elif sys.stdin is None:
            raise UsageError("standard input is closed; give TEXT or --text-file F")
        else:
            data = sys.stdin.buffer.read(_MAX_TEXT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}; check --text-file") from error
    if len(data) > _MAX_TEXT_BYTES:
        raise UsageError(f"{name} is longer than {_MAX_TEXT_BYTES >> 20} MiB; divide the text")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not text in UTF-8 (byte {error.start} is 0x{data[error.start]:02x}); "
            "save it as UTF-8"
        ) from error


def _choose_voice(
    speaker: Speaker, args: argparse.Namespace
) -> tuple[VoiceChoice, tuple[str, ...]]:
    """The voices asked for, and what is to be said about a recording."""
    transcript: str | None = args.voice_transcript
    if args.voice_ref is not None:
        return speaker.make_voice("voice-ref", args.voice_ref, transcript)
    names = None if args.voice is None else args.voice.split(",")
    if transcript is None:
        return (names[0] if names and len(names) == 1 else names), ()
    if names is None or len(names) != 1 or names == [NO_VOICE]:
        raise UsageError("--voice-transcript belongs to a voice; give one --voice, or --voice-ref")
    return replace(speaker.voices.load(names[0]), transcript=transcript), ()


def _settings(args: argparse.Namespace) -> SpeechSettings:
    return {
        "seed": args.seed,
        "temperature": args.temperature,
        "top_k": args.top_k,
        "top_p": args.top_p,
        "repetition_penalty": args.repetition_penalty,
        "max_frames": args.max_frames,
        "max_tokens": args.max_tokens,
        "num_codebooks": args.codebooks,
        "mode": args.mode,
        "instruction": args.instruction,
        "language": args.language,
        "force_audio_start": args.force_audio_start,
        "normalize": not args.no_normalize,
        "dictionary": None if args.dictionary is None else read_dictionary(args.dictionary).entries,
    }


def _deliver(stream: SpeechStream, speaker: Speaker, out: str | None, *, play: bool) -> None:
    """Write the stream as it comes. Outputs are opened at its first audio, not before."""
    with stream, ProgressLine() as progress, ExitStack() as outputs:
        writers: list[AudioWriter] = []
        for chunk in stream:
            writers = writers or _open_outputs(outputs, speaker, out, play=play)
            for writer in writers:
                writer.write(chunk.samples)
            progress.show(stream)
        summary = stream.summary
        if summary.stop_reason == "no_audio":
            again = f" (begun again {summary.retries} times)" if summary.retries else ""
            raise OutputError(
                f"the model stopped before its first frame{again}, so there is no audio; "
                f"try other words or another seed than {summary.seed}"
            )


def _open_outputs(
    outputs: ExitStack, speaker: Speaker, out: str | None, *, play: bool
) -> list[AudioWriter]:
    writers: list[AudioWriter] = []
    if play:
        player = open_player(speaker.sample_rate, speaker.num_channels)
        writers.append(outputs.enter_context(player))
    if out is not None:  # entered last, so finished first: the file is whole before all is heard
        file = open_writer(out, speaker.sample_rate, speaker.num_channels)
        writers.append(outputs.enter_context(file))
    return writers


def _report(
    stream: SpeechStream, out: str | None, remarks: tuple[str, ...], told: int, *, as_json: bool
) -> None:
    """`told`: how many of the stream's warnings the user has seen already."""
    summary = stream.summary
    for warning in (*remarks, *summary.warnings[told:]):
        warn(warning)
    if as_json:
        warnings = [*remarks, *summary.warnings]
        print(json.dumps({"out": out, **summary.as_dict(), "warnings": warnings}))
        return
    name = "played" if out is None else "standard output" if out == _PIPE else out
    tell(f"{name}: {summary.seconds:.2f} s of audio, RTF {summary.rtf:.2f}, seed {summary.seed}")
