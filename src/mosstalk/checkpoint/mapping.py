"""Takes the tensors a model expects out of a checkpoint, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from mosstalk.checkpoint.storage import StoredTensor
from mosstalk.errors import CheckpointError

_NAMED = 5  # tensors of a kind that an error names


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor a model needs: its name, shape, and other names that it may have in a file."""

    name: str
    shape: tuple[int, ...]
    aliases: tuple[str, ...] = ()


def take(
    tensors: Mapping[str, StoredTensor],
    expected: Iterable[Expected],
    *,
    ignorable: Sequence[str] = (),
    what: str,
) -> dict[str, StoredTensor]:
    """The expected tensors by their expected names, whatever alias the checkpoint has.

    `ignorable` holds fnmatch patterns of names that may be there and are not used; `what` names
    the model in errors. Raises one CheckpointError that counts and names the tensors that are
    missing, left over, or of another shape.
    """
    found: dict[str, StoredTensor] = {}
    left = set(tensors)
    missing: list[str] = []
    misshapen: list[str] = []
    for item in expected:
        name = next((name for name in (item.name, *item.aliases) if name in left), None)
        if name is None:
            missing.append(item.name)
            continue
        left.remove(name)
        tensor = tensors[name]
        if tensor.shape != item.shape:
            misshapen.append(f"{name} is {list(tensor.shape)}, not {list(item.shape)}")
        found[item.name] = tensor if name == item.name else replace(tensor, name=item.name)
    surplus = sorted(name for name in left if not matches_any(name, ignorable))
    faults = [
        *_fault(missing, "missing"),
        *_fault(misshapen, "of another shape"),
        *_fault(surplus, "not part of the model"),
    ]
    if faults:
        raise CheckpointError(
            f"{what}: {'; '.join(faults)}; check that config.json and the weights belong together"
        )
    return found


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether a tensor's name fits one of the fnmatch patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _fault(names: list[str], kind: str) -> list[str]:
    """A list of one clause about the names, or of none."""
    if not names:
        return []
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return [f"{len(names)} {'tensor' if len(names) == 1 else 'tensors'} {kind} ({shown})"]
