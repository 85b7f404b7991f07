# SPDX-License-Identifier: Apache-2.0
"""The form of every source file: licence line, docstring, characters, sizes."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    ROOT / "model" / "segproof_model",
    ROOT / "impl" / "segproof",
    ROOT / "harness" / "segproof_harness",
    ROOT / "spark_checks" / "segproof_spark",
)
EXAMPLES = ROOT / "spark_checks" / "examples"
OTHERS = (ROOT / "tests", ROOT / "benchmarks", ROOT / "docs", ROOT / ".ci", EXAMPLES)
LICENCE_LINE = "# SPDX-License-Identifier: Apache-2.0"
LINE_LENGTH_MAX = 100
MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
HEADER_LINES_MAX = 25


def sources() -> list[Path]:
    """Return all Python files of the project."""
    found = [path for folder in (*PACKAGES, *OTHERS) for path in folder.rglob("*.py")]
    return sorted(path for path in found if "_build" not in path.relative_to(ROOT).parts)


SOURCES = sources()


def name(path: Path) -> str:
    """Return a path as it is shown in a test's name."""
    return str(path.relative_to(ROOT))


@cache
def outline(path: Path) -> tuple[str | None, list[tuple[str, int, int]]]:
    """Return the docstring of a module; name, first line and lines of each of its functions."""
    tree = ast.parse(path.read_bytes())
    functions = [
        (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return ast.get_docstring(tree), functions


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_package_is_looked_at(package: Path) -> None:
    """Each package holds at least one source file, so that the tests below have a subject."""
    assert any(path.is_relative_to(package) for path in SOURCES)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_licence_line(path: Path) -> None:
    """The first line is the licence line, or the second one behind a `#!`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = lines[1] if lines[0].startswith("#!") else lines[0]
    assert LICENCE_LINE == first


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_characters_and_lengths(path: Path) -> None:
    """Source is ASCII, its lines have at most 100 characters, a module at most 600 lines."""
    data = path.read_bytes()
    wrong = [number for number, line in enumerate(data.split(b"\n"), 1) if not line.isascii()]
    assert [] == wrong, "lines with characters outside ASCII"
    lines = data.decode("ascii").splitlines()
    too_long = [number for number, line in enumerate(lines, 1) if len(line) > LINE_LENGTH_MAX]
    assert [] == too_long, f"lines of more than {LINE_LENGTH_MAX} characters"
    assert len(lines) <= MODULE_LINES_MAX, f"more than {MODULE_LINES_MAX} lines: split the module"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_module_docstring(path: Path) -> None:
    """Each module says what it is for, in at most 25 lines."""
    docstring, _ = outline(path)
    assert docstring, "no module docstring"
    assert len(docstring.splitlines()) <= HEADER_LINES_MAX


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_function_lengths(path: Path) -> None:
    """A function has at most 70 lines, its docstring among them."""
    _, functions = outline(path)
    too_long = [
        f"{name} in line {first}: {lines} lines"
        for name, first, lines in functions
        if lines > FUNCTION_LINES_MAX
    ]
    assert [] == too_long
