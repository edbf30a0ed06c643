"""`mosstalk voices`: the voices on this machine."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from mosstalk.audio.play import open_player
from mosstalk.checkpoint.hub import BUILT_IN
from mosstalk.cli.progress import warn
from mosstalk.design import read_candidate
from mosstalk.engine import Speaker, load
from mosstalk.errors import CheckpointError, UsageError
from mosstalk.types import Voice
from mosstalk.voices import VoiceStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk voices`."""
    actions = parser.add_subparsers(title="actions", dest="action", required=True)
    add = actions.add_parser("add", help="make a voice of a recording and save it")
    add.add_argument("name", metavar="NAME")
    source = add.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "clip", nargs="?", metavar="CLIP", help="WAV, FLAC, OGG or MP3; 5 to 30 s of speech"
    )
    source.add_argument(
        "--from",
        dest="candidate",
        type=Path,
        metavar="DIR/N.wav",
        help="a voice that `mosstalk design` wrote, with what it knows about it",
    )
    add.add_argument("--transcript", metavar="TEXT", help="the words of the recording")
    add.add_argument("--replace", action="store_true", help="take the place of a voice so called")
    _add_model(add)
    add.set_defaults(action=_add)
    actions.add_parser("list", help="show all voices").set_defaults(action=_list)
    for name, action, summary in (
        ("show", _show, "show what is known about a voice"),
        ("remove", _remove, "delete a voice"),
    ):
        command = actions.add_parser(name, help=summary)
        command.add_argument("name", metavar="NAME")
        command.set_defaults(action=action)
    play = actions.add_parser("play", help="play a voice's recording as the model hears it")
    play.add_argument("name", metavar="NAME")
    play.add_argument("--out", metavar="F.wav|F.flac|-", help="write it instead of playing it")
    _add_model(play)
    play.set_defaults(action=_play)
    for action_parser in actions.choices.values():
        action_parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; raises MosstalkError."""
    args.action(args)
    return 0


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        default=BUILT_IN,
        metavar="M",
        help=f"model whose codec the voice belongs to (default: {BUILT_IN})",
    )
    parser.add_argument("--codec", metavar="DIR", help="codec, if it is not with the model")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail where the device computes wrong, rather than compute elsewhere",
    )


def _load(args: argparse.Namespace) -> Speaker:
    speaker = load(args.model, codec=args.codec, strict=args.strict)
    for warning in speaker.warnings:
        warn(warning)
    return speaker


def _add(args: argparse.Namespace) -> None:
    if args.candidate is not None and args.transcript is not None:
        raise UsageError("a designed voice has its transcript; leave --transcript out")
    candidate = None if args.candidate is None else read_candidate(args.candidate)
    speaker = _load(args)
    if candidate is None:
        voice, warnings = speaker.make_voice(args.name, args.clip, args.transcript)
    else:
        voice, warnings = speaker.adopt(args.name, candidate)
    path = speaker.voices.save(voice, replace=args.replace)
    for warning in warnings:
        warn(warning)
    if args.json:
        told = [*speaker.warnings, *warnings]
        print(json.dumps({**_about(voice), "path": str(path), "warnings": told}))
    else:
        source = args.clip or args.candidate
        print(f"{voice.name}: {len(voice.codes)} frames of {source}, saved as {path}")


def _list(args: argparse.Namespace) -> None:
    store = VoiceStore()
    voices = []
    for name in store.names():
        try:
            voices.append(store.load(name))
        except CheckpointError as error:  # one damaged file hides no others
            warn(str(error))
    if args.json:
        print(json.dumps({"folder": str(store.folder), "voices": [_about(v) for v in voices]}))
        return
    if not voices:
        print(f"no voices in {store.folder}; add one with `mosstalk voices add NAME CLIP`")
    width = max((len(voice.name) for voice in voices), default=0)
    for voice in voices:
        transcript = "" if voice.transcript is None else f"  {voice.transcript}"
        print(f"{voice.name:{width}}  {len(voice.codes):4} frames{transcript}")


def _show(args: argparse.Namespace) -> None:
    about = _about(VoiceStore().load(args.name))
    if args.json:
        print(json.dumps(about))
        return
    for key, value in about.items():
        print(f"{key:14}  {'-' if value in (None, '') else value}")


def _remove(args: argparse.Namespace) -> None:
    VoiceStore().remove(args.name)
    print(json.dumps({"removed": args.name}) if args.json else f"{args.name} is removed")


def _play(args: argparse.Namespace) -> None:
    if args.json and args.out == "-":
        raise UsageError("--json and --out - both want standard output; give --out a file")
    speaker = _load(args)
    clip = speaker.hear(args.name)
    if args.out is not None:
        clip.write(args.out)
    else:
        with open_player(clip.sample_rate, clip.samples.shape[0]) as player:
            player.write(clip.samples)
    if args.json:
        about = {"name": args.name, "out": args.out, "seconds": clip.seconds}
        print(json.dumps({**about, "warnings": list(speaker.warnings)}))


def _about(voice: Voice) -> dict[str, object]:
    frames, codebooks = voice.codes.shape
    return {
        "name": voice.name,
        "frames": frames,
        "codebooks": codebooks,
        "sample_rate": voice.sample_rate,
        "codec_identity": voice.codec_identity,
        "source_hash": voice.source_hash,
        "transcript": voice.transcript,
        "origin": None if voice.origin is None else asdict(voice.origin),
    }
