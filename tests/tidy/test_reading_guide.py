# SPDX-License-Identifier: Apache-2.0
"""The reading guide names every file of the model, each behind those that it needs."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "model" / "segproof_model"
GUIDE = ROOT / "docs" / "explanation" / "reading-the-model.md"


def files_in_order() -> list[str]:
    """Return the files of the guide's tables, from top to bottom."""
    return re.findall(r"^\| `(\S+\.py)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def needed_by(path: Path) -> set[str]:
    """Return the files of the model that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [name.removeprefix("segproof_model.") for name in modules if "segproof_model." in name]
    return {f"{name.replace('.', '/')}.py" for name in names}


def test_every_file_is_named_once() -> None:
    """All but the laws, which have the names of their structures."""
    paths = [*MODEL.glob("*.py"), *MODEL.glob("kafka/*.py"), *MODEL.glob("rocketmq/*.py")]
    there = [str(path.relative_to(MODEL)) for path in paths if path.name != "__init__.py"]
    assert sorted(there) == sorted(files_in_order())


def test_each_file_needs_only_those_above() -> None:
    """Whoever reads in this order meets nothing that was not read before."""
    read: set[str] = set()
    for name in files_in_order():
        assert set() == needed_by(MODEL / name) - read, name
        read.add(name)
    assert {"integers.py", "outcomes.py"} == needed_by(MODEL / "kafka" / "varint.py")


def test_modules_of_laws_exist() -> None:
    """Those that the last part names."""
    named = set(re.findall(r"`(laws/\w+\.py)`", GUIDE.read_text(encoding="utf-8")))
    assert len(named) > 5
    assert set() == {name for name in named if not (MODEL / name).is_file()}
