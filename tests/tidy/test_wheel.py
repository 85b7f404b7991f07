# SPDX-License-Identifier: Apache-2.0
"""The wheel: what it holds, and that it is what the tests import under tox."""

import importlib.metadata
import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "segproof_model": ROOT / "model",
    "segproof": ROOT / "impl",
    "segproof_harness": ROOT / "harness",
    "segproof_spark": ROOT / "spark_checks",
}
NotRun = Callable[[str], NoReturn]


@pytest.fixture(scope="module")
def distribution(not_run: NotRun) -> importlib.metadata.Distribution:
    """Return the installed distribution; tox has installed it from a wheel."""
    if "TOX_ENV_NAME" not in os.environ:
        not_run("the installed wheel is looked at under tox only")
    return importlib.metadata.distribution("segproof")


@pytest.mark.parametrize("package", FOLDERS)
def test_tests_import_the_wheel(
    package: str, distribution: importlib.metadata.Distribution
) -> None:
    """Each package comes from site-packages, not from the tree."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    installed = distribution.locate_file(f"{package}/__init__.py")
    assert Path(str(installed)) == Path(spec.origin)
    assert not Path(spec.origin).is_relative_to(FOLDERS[package])


@pytest.mark.parametrize("package", FOLDERS)
def test_wheel_is_complete(package: str, distribution: importlib.metadata.Distribution) -> None:
    """The wheel holds each file of the package, `py.typed` among them, and nothing else."""
    folder = FOLDERS[package] / package
    in_tree = {
        path.relative_to(FOLDERS[package]).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.relative_to(folder).parts
    }
    in_wheel = {
        str(path)
        for path in distribution.files or []
        if path.parts[0] == package and path.suffix != ".pyc"
    }
    assert f"{package}/py.typed" in in_wheel
    assert in_tree == in_wheel


def test_wheel_holds_the_lock_of_the_jars(
    distribution: importlib.metadata.Distribution,
) -> None:
    """What the oracle reads beside its code is there, and not empty."""
    sizes = {str(path): path.size or 0 for path in distribution.files or []}
    for name in ("jars.lock.json", "quiet/log4j.properties"):
        assert sizes[f"segproof_harness/releases/{name}"] > 0


def test_wheel_holds_four_packages(distribution: importlib.metadata.Distribution) -> None:
    """Beside the four packages there are only metadata and scripts."""
    tops = {path.parts[0] for path in distribution.files or []}
    tops = {top for top in tops if top != ".." and not top.endswith(".dist-info")}
    assert set(FOLDERS) == tops


def test_wheel_is_pure_and_licensed(distribution: importlib.metadata.Distribution) -> None:
    """One wheel serves every platform, and it carries the licence."""
    assert "Root-Is-Purelib: true" in (distribution.read_text("WHEEL") or "")
    assert "Apache-2.0" == distribution.metadata["License-Expression"]
    assert "Apache License" in (distribution.read_text("licenses/LICENSE") or "")


def test_lower_bounds(distribution: importlib.metadata.Distribution) -> None:
    """Every dependency, also of an extra, has a lower bound or a pin."""
    wanted = [line for line in distribution.requires or [] if not line.startswith("segproof[")]
    assert wanted
    unbounded = [line for line in wanted if not re.search(r">=|==", line.partition(";")[0])]
    assert [] == unbounded
