# SPDX-License-Identifier: Apache-2.0
"""What `fast` and `quick` leave out is run by the others, which choose by folder only. Each name in
a command is there."""

import ast
import configparser
import shlex
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHOOSING = ("-m", "-k", "--deselect", "--lf", "--last-failed", "--ff", "--collect-only", "--co")
"""Options of pytest by which a test of a folder that is named is not run."""


def chosen(command: str) -> list[str]:
    """Return the options of a command's pytest by which tests are left out; -m with its words."""
    words = shlex.split(command.replace("{posargs:", "").replace("}", ""))
    if "pytest" not in words:
        return []
    words = words[words.index("pytest") + 1 :]
    return [
        " ".join(words[at : at + 2])
        for at, word in enumerate(words)
        if word.partition("=")[0] in CHOOSING or word.startswith(("-m", "-k"))
    ]


def commands() -> dict[str, list[str]]:
    """Return the commands of each environment of tox, by its section."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "tox.ini", encoding="utf-8")
    return {
        name: parser[name]["commands"].strip().splitlines()
        for name in parser.sections()
        if "commands" in parser[name]
    }


def test_only_fast_and_quick_leave_tests_out() -> None:
    """Of the folders that they name, all other environments run every test."""
    found = {
        name: [one for each in lines for one in chosen(each)] for name, lines in commands().items()
    }
    assert ["-m not slow"] == found.pop("testenv:quick")
    assert ["-m not slow", "-k kafka or rocketmq"] == found.pop("testenv:fast")
    assert {} == {name: options for name, options in found.items() if options}


def test_the_first_python_runs_what_quick_leaves_out() -> None:
    """`py311` and `py311-damage` run all of `tests` but folders that have an environment of their
    own; a plain `tox` runs both, and has no `quick`."""
    lines = commands()["testenv"]
    (line,) = [one for one in lines if one.startswith("py311-!damage:")]
    words = shlex.split(line.replace("}", ""))
    assert "{posargs:tests" in words
    ignored = {words[at + 1] for at, word in enumerate(words) if word == "--ignore"}
    folders = {"canaries", "contracts", "explore", "oracle", "proofs", "spark"}
    alone = {f"tests/{name}" for name in folders | {"golden/test_docs_examples.py"}}
    (line,) = [one for one in lines if one.startswith("damage:")]
    damage = line.partition("{posargs:")[2].rstrip("}").split()
    assert damage
    assert alone | set(damage) == ignored
    listed = (ROOT / "tox.ini").read_text(encoding="utf-8").partition("env_list =")[2]
    environments = listed.partition("#")[0].split()
    assert {"py311", "py311-damage"} <= set(environments)
    assert not {"fast", "quick"} & set(environments)


def is_there(word: str) -> bool:
    """Tell if the folder, the file, the pattern or the test that a command names is there."""
    path, _, name = word.partition("::")
    places = list(ROOT.glob(path.replace("*/", "tests/**/", 1)))
    if not name:
        return bool(places)
    return any(
        isinstance(one, ast.FunctionDef) and one.name == name
        for place in places
        for one in ast.parse(place.read_text(encoding="utf-8")).body
    )


def test_what_the_commands_name_is_there() -> None:
    """A test with a new name, or a folder that was moved, ends its environment at the start."""
    words = {
        word
        for lines in commands().values()
        for line in lines
        for word in shlex.split(line.replace("{posargs:", "").replace("}", ""))
        if word.startswith(("tests/", "*/"))
    }
    assert len(words) > 30
    assert [] == sorted(word for word in words if not is_there(word))
    assert not is_there("tests/tidy/test_environments.py::test_of_no_name")
    assert not is_there("*/test_of_no_name*.py")


def test_nothing_else_leaves_tests_out() -> None:
    """Neither pytest's own settings do, nor does what CI asks of tox."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]["pytest"]["ini_options"]
    assert [] == chosen(shlex.join(["pytest", *settings["addopts"]]))
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert run.endswith('&& .venv/bin/tox -p "$at_a_time"\n')
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert '- run: tox run -e "$TOX_ENV"\n' in workflow
    assert "env: quick" not in workflow
    assert "env: fast" not in workflow


@pytest.mark.parametrize(
    "command",
    ['pytest -m "not slow" a', "pytest -mslow", "python -m pytest {posargs:a -k b}", "pytest --lf"],
)
def test_what_leaves_out_is_seen(command: str) -> None:
    """Else the tests above see nothing; and `python -m pytest` alone is no choice."""
    assert 1 == len(chosen(command))
    assert [] == chosen("python -m pytest {posargs:tests/unit --ignore tests/unit/model}")
