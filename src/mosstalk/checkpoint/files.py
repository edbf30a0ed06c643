"""Tensors of one weights file, whatever its format."""

from pathlib import Path

from mosstalk.checkpoint.safetensors_file import read_safetensors
from mosstalk.checkpoint.sniff import FileKind, file_kind
from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.checkpoint.torch_file import read_torch_stream, read_torch_zip
from mosstalk.errors import CheckpointError


def read_weights_file(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a safetensors file or a `pytorch_model.bin`, memory-mapped, by name.

    The format is told by the content, not by the name. Raises CheckpointError.
    """
    kind = file_kind(path)
    if kind is FileKind.SAFETENSORS:
        return read_safetensors(path)
    if kind is FileKind.TORCH_ZIP:
        return read_torch_zip(path)
    if kind is FileKind.TORCH_STREAM:
        return read_torch_stream(path)
    raise CheckpointError(f"{path} is a GGUF file, which stands for a whole model; name it alone")
