"""Which model speaks and where: what `say`, `design` and `serve` share."""

import argparse

from mosstalk.checkpoint.hub import BUILT_IN, HUB_MODELS
from mosstalk.checkpoint.storage import StorageType
from mosstalk.cli.progress import warn
from mosstalk.compute.backend import BACKENDS
from mosstalk.compute.devices import AUTO
from mosstalk.engine import Speaker, load


def add_model_arguments(parser: argparse.ArgumentParser, default: str = BUILT_IN) -> None:
    """A group of arguments that `open_speaker` reads; `default` is the model's name."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        default=default,
        metavar="M",
        help=f"{', '.join((BUILT_IN, *HUB_MODELS))}, a model directory or a .gguf file "
        f"(default: {default})",
    )
    group.add_argument("--codec", metavar="DIR", help="codec, if it is not with the model")
    group.add_argument(
        "--weight-type",
        default=StorageType.NATIVE.value,
        metavar="T",
        help=f"one of {', '.join(StorageType)} (default: native, as the file has them)",
    )
    group.add_argument(
        "--device",
        default=BACKENDS[0],
        metavar="D",
        help=f"one of {', '.join((*BACKENDS, AUTO))}; cuda:1 is the second GPU "
        f"(default: {BACKENDS[0]})",
    )
    group.add_argument(
        "--threads", type=int, default=0, metavar="N", help="default: physical cores - 1, at most 4"
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="fail where the device computes wrong, rather than compute elsewhere",
    )


def open_speaker(args: argparse.Namespace) -> Speaker:
    """The speaker that `add_model_arguments` describes; its warnings are told at once, as what
    stands in for a device may be slow. Raises MosstalkError.
    """
    speaker = load(
        args.model,
        device=args.device,
        threads=args.threads,
        weight_type=args.weight_type,
        codec=args.codec,
        strict=args.strict,
    )
    for warning in speaker.warnings:
        warn(warning)
    return speaker
