"""Runs the models' own PyTorch code, which lies in their checkpoint directories.

Nothing else of mosstalk knows PyTorch. Code in a checkpoint directory is run as it is: give only
directories whose code you would run.
"""

import importlib
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mosstalk import __version__
from mosstalk.errors import CheckpointError, UsageError

# The original imports it to read and write sound files, which is not asked of it here.
_UNUSED_LIBRARY = "torchaudio"
_MODULES_PACKAGE = "transformers_modules"  # in which transformers imports such code


@dataclass(frozen=True, slots=True)
class Libraries:
    """What a family's code runs on.

    Attributes:
        transformers: the version that it asks for.
        extra: of mosstalk, which installs it.
    """

    transformers: str
    extra: str

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'mosstalk[{self.extra}]'"


# With 5.0, rope frequencies are left uninitialised and no error is raised.
NANO_LIBRARIES = Libraries("4.57.6", "reference")
DELAY_LIBRARIES = Libraries("5.0.0", "reference-delay")


class Original:
    """PyTorch and transformers, and the original models that they load."""

    def __init__(self, torch: Any, transformers: Any) -> None:
        self.torch = torch
        self._transformers = transformers

    @property
    def versions(self) -> dict[str, str]:
        """What computes."""
        return {
            "mosstalk": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "torch": self.torch.__version__,
            "transformers": self._transformers.__version__,
        }

    def ask(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call code of a checkpoint directory; raises CheckpointError for whatever it raises."""
        try:
            return function(*arguments, **options)
        except Exception as error:
            message = next(iter(str(error).splitlines()), "")
            raise CheckpointError(
                f"the original code failed: {type(error).__name__}: {message}"
            ) from error

    def language_model(self, folder: Path) -> Any:
        """The model of a checkpoint directory, in float32 on the CPU."""
        return self._load("AutoModelForCausalLM", folder)

    def model(self, folder: Path) -> Any:
        """Another model of its directory, such as a codec, in float32 on the CPU."""
        return self._load("AutoModel", folder)

    def tokenizer(self, folder: Path) -> Any:
        """The tokeniser of a checkpoint directory."""
        load = self._transformers.AutoTokenizer.from_pretrained
        return self.ask(load, str(folder), trust_remote_code=True, local_files_only=True)

    def code(self, folder: Path, module: str, name: str) -> Any:
        """A class of a checkpoint directory's own code; its modules can be imported then."""
        find = self._transformers.dynamic_module_utils.get_class_from_dynamic_module
        return self.ask(find, f"{module}.{name}", str(folder), local_files_only=True)

    def _load(self, loader: str, folder: Path) -> Any:
        model, loaded = self.ask(
            getattr(self._transformers, loader).from_pretrained,
            str(folder),
            trust_remote_code=True,
            local_files_only=True,
            dtype=self.torch.float32,
            output_loading_info=True,
        )
        # It would draw at random what it does not find, and only warn.
        if missing := [*loaded["missing_keys"], *loaded["mismatched_keys"]]:
            raise CheckpointError(
                f"{folder}: the original code misses {len(missing)} tensors, such as {missing[0]}"
            )
        return model.eval()


@contextmanager
def original_code(libraries: Libraries) -> Iterator[Original]:
    """The libraries, ready to load such code.

    Raises UsageError where the extra is not installed, or another version is.
    """
    torch, transformers = (_import(name, libraries) for name in ("torch", "transformers"))
    if transformers.__version__ != libraries.transformers:
        raise UsageError(
            f"transformers is {transformers.__version__}, but the original code needs "
            f"{libraries.transformers}: {libraries.install}"
        )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as modules, _stand_in(_UNUSED_LIBRARY):
        # Where transformers copies code to before it imports it.
        transformers.dynamic_module_utils.HF_MODULES_CACHE = modules
        try:
            with torch.inference_mode():
                yield Original(torch, transformers)
        finally:
            _forget_modules(modules)


def require_code(folder: Path) -> None:
    """Raise CheckpointError unless a directory holds code of its own."""
    if not any(folder.glob("modeling_*.py")):
        raise CheckpointError(
            f"{folder} has no modeling_*.py; the directory must be as published, with the "
            "model's own code"
        )


def _import(name: str, libraries: Libraries) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"{name} is not installed, which runs the original: {libraries.install}"
        ) from None


def _forget_modules(folder: str) -> None:
    """Undo what transformers did to import code from `folder`, which will be gone."""
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    for name in [name for name in sys.modules if name.split(".")[0] == _MODULES_PACKAGE]:
        del sys.modules[name]


@contextmanager
def _stand_in(name: str) -> Iterator[None]:
    """An empty module for a library that is imported and not used."""
    if name in sys.modules:
        yield
        return
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    sys.modules[name] = module
    try:
        yield
    finally:
        del sys.modules[name]
