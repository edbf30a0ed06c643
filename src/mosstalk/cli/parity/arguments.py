"""Arguments that the parity commands share."""

import argparse
from collections.abc import Callable
from typing import Any

from mosstalk.compute.backend import BACKENDS
from mosstalk.parity.opening import ModelChoice

REFERENCE_AUTO = (
    "1e-5 where the weights are the reference's, more where they are rounded or on a GPU"
)


def add_model_arguments(parser: argparse.ArgumentParser, *, weight_type: bool = True) -> None:
    """The model, its codec and the device."""
    defaults = ModelChoice(model="")
    parser.add_argument("--model", required=True, help="model name, directory or .gguf file")
    parser.add_argument("--codec", help="directory of the codec, where it is not with the model")
    parser.add_argument("--backend", default=defaults.backend, help=" or ".join(BACKENDS))
    parser.add_argument("--threads", type=int, default=defaults.threads, help="0: automatic")
    if weight_type:
        parser.add_argument(
            "--weight-type", default=defaults.weight_type, help="native, f32, f16, bf16 or q8_0"
        )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_tolerance(
    parser: argparse.ArgumentParser, auto: str = "0 on cpu (the same bits), 1e-4 on a GPU"
) -> None:
    """`--tolerance auto` or a number; `auto` says what the former means."""
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=None,
        metavar="auto|FLOAT",
        help=f"relative to the largest value; auto: {auto}",
    )


def model_choice(args: argparse.Namespace) -> ModelChoice:
    """What `add_model_arguments` parsed."""
    return ModelChoice(
        model=args.model,
        codec=args.codec,
        backend=args.backend,
        threads=args.threads,
        weight_type=getattr(args, "weight_type", "native"),
    )


def list_of(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """A parser of values with commas between them."""

    def parse(text: str) -> tuple[Any, ...]:
        return tuple(kind(part) for part in text.split(","))

    parse.__name__ = f"list of {kind.__name__}"  # argparse names it in its message
    return parse


def _tolerance(text: str) -> float | None:
    return None if text == "auto" else float(text)
