# SPDX-License-Identifier: Apache-2.0
"""What may be imported where, beyond the contracts that import-linter keeps."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "model" / "segproof_model"
IMPL = ROOT / "impl" / "segproof"
PACKAGES = (
    MODEL,
    IMPL,
    ROOT / "harness" / "segproof_harness",
    ROOT / "spark_checks" / "segproof_spark",
)
DOOR = IMPL / "files.py"
HEAVY = ("numba", "pyspark", "hypothesis", "pandas", "pyarrow", "crosshair", "pytest", "typer")

LAYERS_MAX = 8
"""More steps than these nobody follows who reads from import to import in one folder."""

# The model has no input or output, no clock and no randomness.
NOT_IN_THE_MODEL = frozenset(
    {"asyncio", "ctypes", "io", "logging", "mmap", "multiprocessing", "os", "pathlib"}
    | {"random", "secrets", "shutil", "socket", "subprocess", "sys", "tempfile", "threading"}
    | {"time", "uuid", "warnings"}
)

# A calendar is no clock, as long as nobody asks it what time it is.
CLOCKS = frozenset({"now", "today", "utcnow", "astimezone"})

# What other modules than the door may ask of `os`: nothing that opens, changes or removes.
HARMLESS = frozenset({"PathLike", "cpu_count", "environ", "fsdecode", "fsencode", "fspath"})
HARMLESS |= {"getpid", "getppid", "path", "process_cpu_count", "sched_getaffinity", "sep"}
BEHIND_DOORS = ("fcntl", "mmap", "shutil", "tempfile")
MAY_BE_DOORS = re.compile(rf"\bos\.|\bfrom os\b|(?<![.\w])open\(|\b({'|'.join(BEHIND_DOORS)})\b")
"""What the text of a file says that has a door; most have none of it, and are not parsed."""


def imported_roots(tree: ast.Module) -> set[str]:
    """Return the top names of everything that a source file imports when it runs, at any depth."""
    roots = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []  # what only the type checker reads
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            roots.add((node.module or "").partition(".")[0])
    return roots


def test_model_needs_the_standard_library_only() -> None:
    """Each import of the model is its own or the standard library's, and touches no outside."""
    allowed = (sys.stdlib_module_names | {"segproof_model"}) - NOT_IN_THE_MODEL
    modules = sorted(MODEL.rglob("*.py"))
    assert modules
    wrong = {
        str(path.relative_to(ROOT)): sorted(extra)
        for path in modules
        if (extra := imported_roots(ast.parse(path.read_bytes())) - allowed)
    }
    assert {} == wrong


def files_by_module(packages: Iterable[Path]) -> dict[str, Path]:
    """Return the source files of packages by the names of their modules."""
    return {
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for package in packages
        for path in package.rglob("*.py")
    }


def imports_by_module(files: dict[str, Path]) -> dict[str, set[str]]:
    """Return which of these modules each of them imports, also for the type checker only."""
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        names = set[str]()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= inside & files.keys() or {str(node.module)}
        found[module] = names & files.keys()
    return found


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Return the imports of all four packages."""
    return imports_by_module(files_by_module(PACKAGES))


def circle_of(imports: dict[str, set[str]]) -> list[str]:
    """Return modules of which each is imported by the one before it, the first also last."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def test_no_files_import_in_a_circle(imports: dict[str, set[str]], tmp_path: Path) -> None:
    """Each file can be read after the files that it imports, at any depth and for types too."""
    assert len(imports) > 400
    assert [] == circle_of(imports)
    package = tmp_path / "round"
    package.mkdir()
    (package / "one.py").write_text("if TYPE_CHECKING:\n    from round.two import Two\n")
    (package / "two.py").write_text("def late():\n    import round.one\n")
    seen = imports_by_module(files_by_module([package]))
    assert {"round.one", "round.two"} == set(circle_of(seen))


def layers_of(imports: dict[str, set[str]]) -> dict[str, int]:
    """Return how long the longest chain of imports is that stays in a module's own folder."""
    found: dict[str, int] = {}
    for module in TopologicalSorter(imports).static_order():
        folder = module.rpartition(".")[0]
        inside = (found[one] for one in imports[module] if one.rpartition(".")[0] == folder)
        found[module] = 1 + max(inside, default=0)
    return found


def test_no_folder_has_too_many_layers(imports: dict[str, set[str]]) -> None:
    """Each folder of the implementation can be read from its end in a few steps."""
    ours = {module for module in imports if module.split(".")[0] == IMPL.name}
    found = layers_of({module: imports[module] & ours for module in ours})
    assert len(found) > 200
    assert {} == {module: layers for module, layers in found.items() if layers > LAYERS_MAX}
    assert {"a.b": 2, "a.c": 1, "d": 1} == layers_of({"a.b": {"a.c"}, "a.c": {"d"}, "d": set()})


def clocks(path: Path) -> list[str]:
    """Return the lines of a source file that ask a calendar for the time or the zone of now."""
    text = path.read_text(encoding="utf-8")
    return [
        f"line {node.lineno}: {node.func.attr}()"
        for node in ast.walk(ast.parse(text if any(one in text for one in CLOCKS) else ""))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in CLOCKS
    ]


def test_model_has_no_clock(tmp_path: Path) -> None:
    """Dates are computed from times that are given."""
    wrong = {str(path): found for path in sorted(MODEL.rglob("*.py")) if (found := clocks(path))}
    assert {} == wrong
    asking = tmp_path / "asking.py"
    asking.write_text("from datetime import datetime\nprint(datetime.now())\n")
    assert ["line 2: now()"] == clocks(asking)


def doors(path: Path) -> list[str]:
    """Return the lines of a source file that reach the operating system by themselves."""
    text = path.read_text(encoding="utf-8")
    if not MAY_BE_DOORS.search(text):
        return []
    found, tree = [], ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=attr) if attr not in HARMLESS:
                found.append(f"line {node.lineno}: os.{attr}")
            case ast.Call(func=ast.Name(id="open")):
                found.append(f"line {node.lineno}: open()")
            case ast.ImportFrom(module="os", names=names):
                found += [f"line {node.lineno}: {alias.name}" for alias in names]
    return found + sorted({*BEHIND_DOORS} & imported_roots(tree))


def test_one_door_to_the_operating_system() -> None:
    """In the implementation only `files.py` opens, maps, reads or writes files."""
    assert doors(DOOR), "the door itself must be seen, else this test sees nothing"
    modules = [path for path in sorted(IMPL.rglob("*.py")) if path != DOOR]
    wrong = {str(path.relative_to(ROOT)): found for path in modules if (found := doors(path))}
    assert {} == wrong


@pytest.mark.parametrize(
    "package", ["segproof", "segproof.kafka", "segproof.rocketmq", "segproof_model"]
)
def test_import_is_light(package: str) -> None:
    """Importing what users import loads no test tool, no compiler, no Spark, no command line."""
    assert [] == loaded_by(f"import {package}")


def test_command_line_is_light() -> None:
    """`segproof --help` loads typer and nothing else that is heavy."""
    program = (
        "import sys, contextlib, io\n"
        "from segproof_harness.cli import main\n"
        "sys.argv = ['segproof', '--help']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main()"
    )
    assert ["typer"] == loaded_by(program)


def loaded_by(program: str) -> list[str]:
    """Return which of the heavy modules a new interpreter has loaded after `program`."""
    report = f"\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program + report], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout.split()
