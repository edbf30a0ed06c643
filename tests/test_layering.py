"""Imports go one way: a module imports only what stands above it (see the design's layers)."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mosstalk

SOURCE = Path(mosstalk.__file__).parent
# From the top; parts of one layer do not import each other, those in one tuple may.
LAYERS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("errors", "types"),),
    (("audio",), ("text",), ("checkpoint",)),
    (("compute",),),
    (("nn",),),
    (("codec",), ("models",)),
    (
        (
            "design",
            "engine",
            "scheduled_stream",
            "scheduler",
            "speaking",
            "stream",
            "turns",
            "voices",
        ),
    ),
    (("server",), ("batch",)),
    (("cli",),),
    (("parity",),),
)
PLACES = {
    part: (depth, group) for depth, layer in enumerate(LAYERS) for group in layer for part in group
}
ROOT = ("__init__", "__main__")  # the public names, and `python -m mosstalk`
REGISTRIES = tuple(f"mosstalk.models.{name}" for name in ("identity", "registry", "speech_model"))
CODECS = ("mosstalk.codec.registry", "mosstalk.codec.codec")
PARITY_COMMAND = ("cli", "parity")  # the only way into parity
# Loaded by what needs them. soundfile, which reads and writes every clip, is not among them.
HEAVY = ("torch", "huggingface_hub", "gguf", "sentencepiece", "tokenizers", "wgpu")


def _modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    """Modules of mosstalk that a file imports, anywhere in it; constants given to
    `import_module` too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "mosstalk":
                names = [f"mosstalk.{alias.name}" for alias in node.names]
            elif (SOURCE.parent / node.module.replace(".", "/")).is_dir():
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.split(".")[0] == "mosstalk")


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _is_inside(path: Path, *parts: str) -> bool:
    return path.relative_to(SOURCE).parts[: len(parts)] == parts


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_module_has_a_layer() -> None:
    parts = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in _modules()}
    assert parts - set(PLACES) - set(ROOT) == set()


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_imports_go_up(path: Path) -> None:
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ROOT:
        return
    depth, group = PLACES[part]
    for module in _imports(path):
        wanted = _part(module)
        if wanted == "parity" and _is_inside(path, *PARITY_COMMAND):
            continue
        if wanted not in PLACES:  # `from mosstalk import __version__`
            assert depth >= len(LAYERS) - 2, f"{_name(path)} imports the public names"
            continue
        other_depth, other_group = PLACES[wanted]
        assert other_depth < depth or other_group == group, f"{_name(path)} imports {module}"


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_no_family_or_codec_is_known_but_to_its_registry(path: Path) -> None:
    if _is_inside(path, "parity"):
        return
    for module in _imports(path):
        name = ".".join(module.split(".")[:3])
        for kind, open_to_all in (("models", REGISTRIES), ("codec", CODECS)):
            if _part(module) == kind and not _is_inside(path, kind):
                assert name in open_to_all, f"{_name(path)} imports {module}"


@pytest.mark.parametrize("kind", ["models", "codec"])
def test_families_do_not_import_each_other(kind: str) -> None:
    folders = [path for path in (SOURCE / kind).iterdir() if (path / "__init__.py").exists()]
    for folder in folders:
        others = {f"mosstalk.{kind}.{other.name}" for other in folders if other != folder}
        for path in folder.rglob("*.py"):
            for module in _imports(path):
                assert ".".join(module.split(".")[:3]) not in others, f"{_name(path)}: {module}"


@pytest.mark.parametrize("path", _modules(), ids=_name)
def test_backends_are_opened_by_name_only(path: Path) -> None:
    """Models know the op table, never cpu, cuda or vulkan."""
    if _is_inside(path, "compute") or _is_inside(path, "parity"):
        return
    backends = {f"mosstalk.compute.{name}" for name in ("cpu", "cuda", "vulkan")}
    for module in _imports(path):
        assert ".".join(module.split(".")[:3]) not in backends, f"{_name(path)}: {module}"


def test_backends_do_not_import_each_other() -> None:
    names = ("cpu", "cuda", "vulkan")
    for name in names:
        for path in (SOURCE / "compute" / name).rglob("*.py"):
            for module in _imports(path):
                others = [f"mosstalk.compute.{other}" for other in names if other != name]
                assert not module.startswith(tuple(others)), f"{_name(path)}: {module}"


def test_nothing_imports_parity_but_its_command() -> None:
    for path in _modules():
        if not _is_inside(path, "parity") and not _is_inside(path, *PARITY_COMMAND):
            assert not any(_part(module) == "parity" for module in _imports(path)), _name(path)


def test_importing_mosstalk_loads_no_heavy_library() -> None:
    code = f"import sys, mosstalk; print(*[name for name in {HEAVY} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
