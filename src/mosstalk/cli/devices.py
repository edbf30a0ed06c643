"""`mosstalk devices`: what there is to compute on, and how fast each speaks a model."""

import argparse
import json
from dataclasses import asdict, dataclass

from mosstalk.cli.progress import tell
from mosstalk.compute.devices import DeviceFacts, list_devices
from mosstalk.engine import Speaker, load
from mosstalk.errors import MosstalkError, UsageError
from mosstalk.voices import NO_VOICE

_TEXT = "The quick brown fox jumps over the lazy dog, and then it rests for a while."
_SEEDS = range(4)  # a model that begins with its stop says nothing; another seed does
_CLOSE = 1.1  # times the fastest: as good as it


@dataclass(frozen=True, slots=True)
class _Speed:
    """How a device speaks a model.

    Attributes:
        rtf: seconds of work for each second of audio; None where it could not be measured.
        ttfa_ms: to the first audio.
        frames: that were measured.
        problem: why nothing was measured; "" otherwise.
    """

    rtf: float | None = None
    ttfa_ms: float | None = None
    frames: int = 0
    problem: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `mosstalk devices`."""
    parser.add_argument("--model", metavar="M", help="measure how fast each device speaks it")
    parser.add_argument("--codec", metavar="DIR", help="codec, if it is not with the model")
    parser.add_argument("--weight-type", default="native", metavar="T", help="default: native")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="0: automatic")
    parser.add_argument(
        "--frames", type=int, default=25, metavar="N", help="to speak on each (default: 25)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the devices, and their speeds with `--model`; raises MosstalkError."""
    if args.frames < 1:
        raise UsageError(f"frames is {args.frames}, but must be at least 1")
    devices = list_devices()
    speeds = None if args.model is None else _measure_all(devices, args)
    if args.json:
        print(json.dumps(_as_dict(devices, speeds, args.model)))
    else:
        print("\n".join(_as_text(devices, speeds)))
    return 0


def _measure_all(devices: list[DeviceFacts], args: argparse.Namespace) -> dict[str, _Speed]:
    """By the device's name. The cpu comes first: a problem there is the model's and raised."""
    speeds = {}
    for device in devices:
        if device.problem:
            continue
        tell(f"measuring {device.name}")
        try:
            speeds[device.name] = _measure(device.name, args)
        except MosstalkError as error:
            if device.kind == "cpu":
                raise
            speeds[device.name] = _Speed(problem=str(error))
    return speeds


def _measure(name: str, args: argparse.Namespace) -> _Speed:
    """Speak once to warm up, then once for the clock."""
    speaker = load(
        args.model,
        device=name,
        threads=args.threads,
        weight_type=args.weight_type,
        codec=args.codec,
        strict=True,
    )
    for seed in _SEEDS:
        if _speak(speaker, seed, args.frames).frames:
            measured = _speak(speaker, seed, args.frames)
            return measured if measured.rtf is not None else _Speed(problem="nothing was spoken")
    return _Speed(problem="the model stopped before its first frame")


def _speak(speaker: Speaker, seed: int, frames: int) -> _Speed:
    voice = NO_VOICE if speaker.model.needs_voice else None
    summary = speaker.say(_TEXT, voice, seed=seed, max_frames=frames, max_tokens=0).summary
    if not summary.frames:
        return _Speed()
    return _Speed(round(summary.rtf, 4), round(summary.ttfa_ms, 1), summary.frames)


def _fastest(speeds: dict[str, _Speed]) -> str:
    """The device with the least work for a second of audio; the first listed where as good."""
    measured = {name: speed.rtf for name, speed in speeds.items() if speed.rtf is not None}
    least = min(measured.values(), default=0.0)
    return next((name for name, rtf in measured.items() if rtf <= _CLOSE * least), "")


def _as_dict(
    devices: list[DeviceFacts], speeds: dict[str, _Speed] | None, model: str | None
) -> dict[str, object]:
    found: list[dict[str, object]] = [asdict(device) for device in devices]
    if speeds is None:
        return {"devices": found}
    for facts in found:
        speed = speeds.get(str(facts["name"]))
        facts["speed"] = None if speed is None else asdict(speed)
    return {"devices": found, "model": model, "fastest": _fastest(speeds)}


def _as_text(devices: list[DeviceFacts], speeds: dict[str, _Speed] | None) -> list[str]:
    width = max(len(device.name) for device in devices)
    lines = []
    for device in devices:
        parts = [_facts(device)]
        if speeds is not None and device.name in speeds:
            parts.append(_speed(speeds[device.name]))
        lines.append(f"{device.name:{width}}  {'; '.join(parts)}")
    fastest = "" if speeds is None else _fastest(speeds)
    if fastest:
        more = ""
        if fastest == "cpu" and speeds is not None and len(speeds) > 1:
            more = " (a small model often is: a GPU takes longer to start each of its many steps)"
        lines.append(f"fastest for this model: --device {fastest}{more}")
    return lines


def _facts(device: DeviceFacts) -> str:
    if device.problem:
        return f"none: {device.problem}"
    parts = [device.title, device.driver]
    if device.cores:
        parts.append(f"{device.cores} cores")
    if device.memory_bytes:
        parts.append(f"{device.memory_bytes / 1e9:.1f} GB")
    return ", ".join(part for part in parts if part)


def _speed(speed: _Speed) -> str:
    if speed.rtf is None or speed.ttfa_ms is None:
        return f"not measured: {speed.problem}"
    return f"RTF {speed.rtf:.3f}, first audio after {speed.ttfa_ms:.0f} ms"
