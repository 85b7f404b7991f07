# SPDX-License-Identifier: Apache-2.0
"""The form of every source file: licence line, docstring, characters, sizes."""

import ast
from collections.abc import Iterator
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


def functions_in(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions below a node: a statement each, in a body of other statements."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for each in getattr(node, field, ()):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                yield each
            yield from functions_in(each)


def outline(path: Path) -> tuple[str | None, list[tuple[str, int, int]]]:
    """Return the docstring of a module; name, first line and lines of each of its functions."""
    tree = ast.parse(path.read_bytes())
    functions = [
        (node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in functions_in(tree)
    ]
    return ast.get_docstring(tree), functions


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_package_is_looked_at(package: Path) -> None:
    """Each package holds at least one source file, so that the tests below have a subject."""
    assert any(path.is_relative_to(package) for path in SOURCES)


def test_licence_line() -> None:
    """The first line is the licence line, or the second one behind a `#!`."""
    wrong = []
    for path in SOURCES:
        first, second, *_ = [*path.read_text(encoding="utf-8").splitlines(), ""]
        if LICENCE_LINE != (second if first.startswith("#!") else first):
            wrong.append(name(path))
    assert [] == wrong


def test_characters_and_lengths() -> None:
    """Source is ASCII, its lines have at most 100 characters, a module at most 600 lines."""
    wrong = []
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.isascii():
                wrong.append(f"{name(path)}:{number}: characters outside ASCII")
            if len(line) > LINE_LENGTH_MAX:
                wrong.append(f"{name(path)}:{number}: more than {LINE_LENGTH_MAX} characters")
        if len(lines) > MODULE_LINES_MAX:
            wrong.append(f"{name(path)}: more than {MODULE_LINES_MAX} lines: split the module")
    assert [] == wrong


def test_docstrings_and_function_lengths() -> None:
    """Each module says in at most 25 lines what it is for; a function has at most 70 lines."""
    wrong = []
    for path in SOURCES:
        docstring, functions = outline(path)
        if not 1 <= len((docstring or "").splitlines()) <= HEADER_LINES_MAX:
            wrong.append(f"{name(path)}: a docstring of 1 to {HEADER_LINES_MAX} lines is missing")
        for function, first, lines in functions:
            if lines > FUNCTION_LINES_MAX:
                wrong.append(f"{name(path)}:{first}: {function} has {lines} lines")
    assert [] == wrong
