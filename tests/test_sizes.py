"""Modules and functions stay small enough to read in one go."""

import ast
from pathlib import Path

import pytest

import mosstalk

SOURCE = Path(mosstalk.__file__).parent
MODULE_LINES = 400  # the rule of the house is 300; what is over that should be split next
FUNCTION_LINES = 60
CODE = sorted(path for path in SOURCE.rglob("*.py") if "__pycache__" not in path.parts)


def _name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES


@pytest.mark.parametrize("path", CODE, ids=_name)
def test_functions_are_short(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{node.name} has {lines} lines"
