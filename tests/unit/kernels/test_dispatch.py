# SPDX-License-Identifier: Apache-2.0
"""When a kernel is interpreted, when it is compiled, and what decides."""

import contextlib
import importlib
import subprocess
import sys
import threading
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.kernels import dispatch
from segproof.kernels.dispatch import COMPILE_AFTER_WORK, Kernel, kernel, kernel_mode


@kernel
def doubled(number: int) -> int:
    """Return twice the number."""
    return number * 2


@kernel
def doubled_and_one(number: int) -> int:
    """Return twice the number and one; calls another kernel."""
    return doubled(number) + 1


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were compiled, without numba and without its time."""
    names: list[str] = []

    def compile_instead(function: object) -> object:
        names.append(getattr(function, "__name__", ""))
        return function

    monkeypatch.setattr(dispatch, "compile_function", compile_instead)
    return names


def fresh() -> "Kernel[[int], int]":
    """Return a kernel that has seen no work."""
    return Kernel(doubled.source)


def test_answers_and_name() -> None:
    """A kernel is called like its function, and keeps its name and docstring."""
    assert 14 == fresh()(7)
    assert "doubled" == doubled.name
    assert "Return twice the number." == doubled.__doc__


def test_interpreted_calls_interpreted_callees() -> None:
    """What contracts confirm is plain all the way down: no dispatch in between."""
    plain = doubled_and_one.interpreted
    assert not isinstance(plain, Kernel)
    assert not isinstance(plain.__globals__["doubled"], Kernel)
    assert plain.__code__ is doubled_and_one.source.__code__
    assert 15 == plain(7)


def test_mode_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown mode is refused with the known ones."""
    monkeypatch.delenv("SEGPROOF_KERNELS", raising=False)
    assert "auto" == kernel_mode()
    monkeypatch.setenv("SEGPROOF_KERNELS", "fast")
    with pytest.raises(ValueError, match="auto, compiled or interpreted"):
        kernel_mode()


def test_auto_compiles_after_work(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreted up to the limit, compiled behind it."""
    monkeypatch.setenv("SEGPROOF_KERNELS", "auto")
    monkeypatch.setattr(dispatch, "numba_available", lambda: True)
    one = fresh()
    for _ in range(COMPILE_AFTER_WORK):
        one(1)
    assert [] == compiled
    assert 2 == one(1)
    assert ["doubled"] == compiled
    assert one.is_compiled


def test_announced_work_counts(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A bulk caller says how much is coming, and the first call is compiled already."""
    monkeypatch.setenv("SEGPROOF_KERNELS", "auto")
    monkeypatch.setattr(dispatch, "numba_available", lambda: True)
    one = fresh()
    one.announce(COMPILE_AFTER_WORK)
    assert [] == compiled
    one.announce(1)
    assert ["doubled"] == compiled
    assert one.is_compiled


def test_auto_without_numba_stays_interpreted(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is missing but speed."""
    monkeypatch.setenv("SEGPROOF_KERNELS", "auto")
    monkeypatch.setattr(dispatch, "numba_available", lambda: False)
    one = fresh()
    one.announce(COMPILE_AFTER_WORK + 1)
    assert 2 == one(1)
    assert ([], False) == (compiled, one.is_compiled)
    assert one.call is one.interpreted


def test_interpreted_is_never_compiled(
    compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the work."""
    monkeypatch.setenv("SEGPROOF_KERNELS", "interpreted")
    one = fresh()
    one.announce(10 * COMPILE_AFTER_WORK)
    assert 2 == one(1)
    assert ([], False) == (compiled, one.is_compiled)


def test_compiled_from_the_first_call(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first answer."""
    monkeypatch.setattr(dispatch, "find_spec", lambda name: name)
    monkeypatch.setenv("SEGPROOF_KERNELS", "compiled")
    one = fresh()
    assert 2 == one(1)
    assert (["doubled"], True) == (compiled, one.is_compiled)


def test_what_cannot_be_compiled_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was an internal error of the command line."""
    monkeypatch.setattr(dispatch, "find_spec", lambda name: None)
    monkeypatch.setenv("SEGPROOF_KERNELS", "compiled")
    with pytest.raises(dispatch.KernelsError, match="compiled, and numba is not installed"):
        fresh()(1)


@pytest.mark.needs("numba")
def test_callees_are_compiled_too() -> None:
    """numba gets a compiled callee, since it knows nothing of dispatch."""
    one = Kernel(doubled_and_one.source)
    one.compile()
    assert 15 == one(7)
    assert one.is_compiled


def test_import_leaves_numba_alone() -> None:
    """Half a second is not spent before there is work."""
    code = "import segproof.kafka, sys; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()


def test_threads_that_compile_keep_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two threads that compile at a time store both results in the cache's own folder."""
    config = types.SimpleNamespace(CACHE_DIR="")
    met = threading.Barrier(2)
    seen: list[str] = []

    def njit(function: Callable[..., Any], cache: bool) -> Callable[..., Any]:
        assert cache
        with contextlib.suppress(threading.BrokenBarrierError):
            met.wait(0.2)  # so long that a thread without the lock would come in between
        seen.append(config.CACHE_DIR)
        return function

    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace(njit=njit))
    monkeypatch.setitem(sys.modules, "numba.core.config", config)
    monkeypatch.setattr(dispatch, "import_module", sys.modules.__getitem__)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "folder"))
    threads = [
        threading.Thread(target=dispatch.compile_function, args=(doubled.source,)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(tmp_path / "folder")] * 2 == seen
    assert "" == config.CACHE_DIR


@pytest.mark.needs("numba")
def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a worker whose folders are all closed, numba refused, and each deep check died of it."""
    # No folder can be made below /proc, whoever asks.
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "/proc/none")
    closed = types.FunctionType(doubled.source.__code__.replace(co_filename="/proc/version"), {})
    assert 14 == dispatch.compile_function(closed)(7)


@pytest.mark.needs("numba")
def test_nothing_is_kept_of_a_zip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A zip that Spark ships lies elsewhere in each run, so what is kept would never be found."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with zipfile.ZipFile(tmp_path / "code.zip", "w") as code:
        code.writestr("zipped_kernel.py", "def tripled(number):\n    return number * 3\n")
    monkeypatch.syspath_prepend(str(tmp_path / "code.zip"))
    tripled = importlib.import_module("zipped_kernel").tripled
    assert 21 == dispatch.compile_function(tripled)(7)
    assert ["code.zip"] == [path.name for path in tmp_path.iterdir()]


def test_settings_in_the_present_directory_are_not_read(
    compiled: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """numba imports what they name, and a list in their place ended each verb there."""
    monkeypatch.setattr(dispatch, "find_spec", lambda name: name)
    monkeypatch.setenv("SEGPROOF_KERNELS", "auto")
    monkeypatch.chdir(tmp_path)
    assert dispatch.numba_available()
    (tmp_path / dispatch.NUMBA_SETTINGS).write_text("- 7\n", encoding="ascii")
    one, other = fresh(), fresh()
    for each in (one, other):
        each.announce(COMPILE_AFTER_WORK + 1)
        assert 2 == each(1)
    assert [] == compiled
    told = f"segproof: slow, since nothing is compiled beside {str(tmp_path)[:-1]!a}"[:-1]
    assert 1 == capsys.readouterr().err.count(told)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dispatch.KernelsError, match="nothing is compiled beside"):
        dispatch.compile_function(doubled.source)


@pytest.fixture
def numba_without_code(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each function that numba is told to compile, whether it may load and keep the result."""
    kept: list[bool] = []

    def njit(function: Callable[..., Any], cache: bool = False) -> Callable[..., Any]:
        kept.append(cache)
        return function

    config = types.SimpleNamespace(CACHE_DIR="")
    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace(njit=njit))
    monkeypatch.setattr(dispatch, "import_module", lambda name: config)
    return kept


@pytest.mark.parametrize(
    ("name", "mode"),
    [("", 0o777), ("", 0o770), ("", 0o702), ("sub", 0o777), ("sub/x.nbi", 0o664), ("", -1)],
    ids=str,
)
def test_what_others_may_change_is_not_run(
    name: str,
    mode: int,
    numba_without_code: list[bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """numba unpickles what a folder keeps: whoever could write there ran code as the user."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    (tmp_path / "kernels" / "sub").mkdir(parents=True)
    (tmp_path / "kernels" / "sub" / "x.nbi").write_bytes(b"poison")
    (tmp_path / "kernels").chmod(0o755)
    if mode < 0:
        monkeypatch.setattr("os.geteuid", lambda: tmp_path.stat().st_uid + 1)
    else:
        (tmp_path / "kernels" / name).chmod(mode)
    dispatch.compile_function(doubled.source)
    dispatch.compile_function(doubled.source)
    assert [False, False] == numba_without_code
    assert 1 == capsys.readouterr().err.count("neither taken from")


@pytest.mark.parametrize("is_there", [False, True])
def test_the_folder_of_kernels_is_the_users_alone(
    is_there: bool, numba_without_code: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made for nobody else; one that others may read is taken as it is."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "segproof" / "kernels"
    if is_there:
        folder.mkdir(0o755, parents=True)
    dispatch.compile_function(doubled.source)
    assert [True] == numba_without_code
    assert (0o755 if is_there else 0o700) == folder.stat().st_mode & 0o777


def test_without_a_home_nothing_is_kept(
    numba_without_code: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder was made in the present directory, by the name `~`."""
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # a user without an account
    monkeypatch.chdir(tmp_path)
    dispatch.compile_function(doubled.source)
    assert [False] == numba_without_code
    assert [] == list(tmp_path.iterdir())
