# SPDX-License-Identifier: Apache-2.0
"""The reading guide names every file of the model, each behind those that it needs.

Its questions have answers, and these name methods that there are.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "model" / "segproof_model"
GUIDE = ROOT / "docs" / "explanation" / "reading-the-model.md"
ANSWERS = GUIDE.with_name("reading-answers.md")
FORMAT = "kafka/format/"
QUESTIONS = 20


def files_in_order() -> list[str]:
    """Return the files of the guide's tables, from top to bottom."""
    return re.findall(r"^\| `(\S+\.py)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)


def imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """Yield the imports of a module, but for those that only the type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imports(node)


def needed_by(path: Path) -> set[str]:
    """Return the files of the model that a file imports."""
    found = set()
    for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
        folder, _, name = (node.module or "").partition("segproof_model.")
        if not folder and name:
            module = name.replace(".", "/")
            inside = [f"{module}/{alias.name}.py" for alias in node.names]
            modules = [one for one in inside if (MODEL / one).is_file()]
            found |= set(modules or [f"{module}.py"])
    return found


def test_every_file_is_named_once() -> None:
    """All but the laws, which have the names of their structures."""
    folders = ("language/*.py", "kafka/*/*.py", "rocketmq/*/*.py", "releases.py")
    paths = [path for pattern in folders for path in MODEL.glob(pattern)]
    there = [str(path.relative_to(MODEL)) for path in paths if path.name != "__init__.py"]
    assert sorted(there) == sorted(files_in_order())


def test_each_file_needs_only_those_above() -> None:
    """Whoever reads in this order meets nothing that was not read before."""
    read: set[str] = set()
    for name in files_in_order():
        assert set() == needed_by(MODEL / name) - read, name
        read.add(name)
    needed = {"language/integers.py", "language/outcomes.py", "language/states.py"}
    assert needed == needed_by(MODEL / FORMAT / "varint.py")
    assert "kafka/format/index_releases.py" in needed_by(MODEL / "releases.py")


def test_the_afternoon_is_the_format() -> None:
    """What is read before the behaviours is the language and Kafka's format, and all of that."""
    names = files_in_order()
    afternoon = names[: names.index("language/behaviours.py")]
    of_format = [name for name in afternoon if name.startswith(FORMAT)]
    newest = [
        path
        for path in (MODEL / FORMAT).glob("*.py")
        if not re.search("__init__|_releases|_deviations", path.stem)
    ]
    assert len(newest) == len(of_format)
    assert {"language"} == {Path(name).parts[0] for name in set(afternoon) - set(of_format)}


def test_every_question_has_its_answer() -> None:
    """As many answers as questions, in their order; each says where it stands."""
    questions = re.findall(r"^(\d+)\. ", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    answers = re.split(r"^\*\*(\d+)\. ", ANSWERS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    numbers = [str(number) for number in range(1, QUESTIONS + 1)]
    assert numbers == questions == answers[1::2]
    assert [] == [number for number, text in zip(numbers, answers[2::2], strict=True)
                  if "In `" not in text]  # fmt: skip


def test_answers_name_methods_that_there_are() -> None:
    """Each place is a file of the format, and functions or methods in it."""
    text = ANSWERS.read_text(encoding="utf-8")
    places = re.findall(r"`(\w+\.py)`: ((?:`[\w.]+`,?\s*)+)", text)
    assert len(places) >= QUESTIONS
    for file, names in places:
        tree = ast.parse((MODEL / FORMAT / file).read_text(encoding="utf-8"))
        there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in (one for one in tree.body if isinstance(one, ast.ClassDef)):
            methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef)]
            there |= {f"{node.name}.{method}" for method in methods}
        assert set() == set(re.findall(r"`([\w.]+)`", names)) - there, file


def test_modules_of_laws_exist() -> None:
    """Those that the last part names."""
    named = set(re.findall(r"`(laws/[\w/]+\.py)`", GUIDE.read_text(encoding="utf-8")))
    assert len(named) > 2
    assert set() == {name for name in named if not (MODEL / name).is_file()}
