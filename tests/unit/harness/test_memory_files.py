# SPDX-License-Identifier: Apache-2.0
"""Files in memory behave as those of the operating system: the two side by side."""

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from segproof.files import REAL_FILES, File, Files, Mapping
from segproof_harness.files.memory_files import MemoryFiles

NAMES = st.sampled_from(("a", "b", "c", "directory", "missing/a"))
SIZES = st.integers(-1, 40)


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the class and number of its error."""
    try:
        return call()
    except (OSError, ValueError, OverflowError, BufferError) as error:
        return type(error), getattr(error, "errno", None)


class BothFiles(RuleBasedStateMachine):
    """The same calls on files in memory and on real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.root = tempfile.mkdtemp(prefix="segproof-")
        self.memory = MemoryFiles()
        self.memory.make_directory(f"{self.root}/directory")
        os.mkdir(f"{self.root}/directory")
        self.handles: list[tuple[File, File]] = []
        self.mappings: list[tuple[Mapping, memoryview, Mapping, memoryview]] = []

    @initialize()
    def begin(self) -> None:
        """Begin with one file, open for writing."""
        self.open("a", True, True)

    def both(self, call: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Call on both, and return both answers."""
        return answer(lambda: call(REAL_FILES)), answer(lambda: call(self.memory))

    def path(self, name: str) -> str:
        """Return a path in the test's directory."""
        return f"{self.root}/{name}"

    @rule(name=NAMES, writable=st.booleans(), create=st.booleans())
    def open(self, name: str, writable: bool, create: bool) -> None:
        """Open."""
        real, memory = self.both(
            lambda files: files.open(self.path(name), writable=writable, create=create)
        )
        if isinstance(real, tuple):
            assert real[0] == memory[0]
        else:
            self.handles.append((real, memory))

    @rule(name=NAMES)
    def create_new(self, name: str) -> None:
        """Create a new file, or learn that there is one."""
        real, memory = self.both(lambda files: files.create_new(self.path(name)))
        if real is None or isinstance(real, tuple):
            assert real == memory
        else:
            self.handles.append((real, memory))

    @rule(data=st.data(), size=SIZES, position=SIZES, written=st.binary(max_size=30))
    def use(self, data: st.DataObject, size: int, position: int, written: bytes) -> None:
        """Read, write, cut or grow, sync, close; each on an open or a closed file."""
        if not self.handles:
            return
        real, memory = self.handles[data.draw(st.integers(0, len(self.handles) - 1))]
        calls: dict[str, Callable[[Any], Any]] = {
            "size": lambda file: file.size(),
            "pread": lambda file: file.pread(size, position),
            "pwrite": lambda file: file.pwrite(written, position),
            "truncate": lambda file: file.truncate(size),
            "sync": lambda file: file.sync(),
            "close": lambda file: file.close(),
            "pread_into": lambda file: self.read_into(file, max(size, 0), position),
        }
        name = data.draw(st.sampled_from(sorted(calls)))
        # To touch a mapping behind a cut kills the process: nothing is cut while it is mapped.
        if name == "truncate" and any(len(view) > size for _, view, *_ in self.mappings):
            return
        one, other = answer(lambda: calls[name](real)), answer(lambda: calls[name](memory))
        # Where two things are wrong, either may be named.
        both_refuse = {type(one), type(other)} == {tuple} and isinstance(one[0], type)
        assert one[0] == other[0] if both_refuse else one == other

    @staticmethod
    def read_into(file: File, size: int, position: int) -> tuple[int, bytes]:
        """Read into a buffer."""
        buffer = bytearray(b"x" * size)
        count = file.pread_into(memoryview(buffer), position)
        return count, bytes(buffer)

    @rule(data=st.data(), size=SIZES)
    def map(self, data: st.DataObject, size: int) -> None:
        """Map; what is written through it is seen by every handle."""
        if not self.handles:
            return
        real, memory = self.handles[data.draw(st.integers(0, len(self.handles) - 1))]
        one, other = answer(lambda: real.map(size)), answer(lambda: memory.map(size))
        if isinstance(one, tuple):
            assert one[0] == other[0]
            return
        self.mappings.append((one, one.view(), other, other.view()))

    @rule(data=st.data(), place=st.integers(0, 39), byte=st.integers(0, 255))
    def write_through_mapping(self, data: st.DataObject, place: int, byte: int) -> None:
        """Write one byte through a mapping."""
        if self.mappings:
            _, one, _, other = self.mappings[data.draw(st.integers(0, len(self.mappings) - 1))]
            if place < len(one):
                one[place] = other[place] = byte

    @rule(data=st.data(), release=st.booleans())
    def unmap(self, data: st.DataObject, release: bool) -> None:
        """Unmap; refused while a view is alive."""
        if not self.mappings:
            return
        chosen = data.draw(st.integers(0, len(self.mappings) - 1))
        one, view, other, other_view = self.mappings[chosen]
        if release:
            view.release()
            other_view.release()
            del self.mappings[chosen]
        assert answer(one.close) == answer(other.close) or not release

    @rule(source=NAMES, new_name=NAMES)
    def rename(self, source: str, new_name: str) -> None:
        """Rename."""
        if "directory" not in (source, new_name):
            real, memory = self.both(lambda f: f.rename(self.path(source), self.path(new_name)))
            assert real == memory

    @rule(source=NAMES, new_name=NAMES)
    def link(self, source: str, new_name: str) -> None:
        """Link."""
        if source != "directory":
            real, memory = self.both(lambda f: f.link(self.path(source), self.path(new_name)))
            assert real == memory

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        """Remove."""
        real, memory = self.both(lambda files: files.remove(self.path(name)))
        assert real == memory

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        """Ask for the status, the list of names, and the durability of names."""
        real, memory = self.both(lambda files: files.status(self.path(name)))
        assert (real is None) == (memory is None)
        if real is not None:
            assert (real.is_directory, real.is_regular) == (memory.is_directory, memory.is_regular)
            assert real.is_directory or real.size_bytes == memory.size_bytes
        for call in ("list_directory", "sync_directory"):
            for path in (self.root, self.path(name)):
                one, other = self.both(methodcaller(call, path))
                assert one == other

    def teardown(self) -> None:
        """Compare every byte once more, and give all back."""
        for name, data in self.memory.images(self.root).items():
            with open(self.path(name), "rb") as file:
                assert file.read() == data
        for one, view, *_ in self.mappings:
            view.release()
            one.close()
        for real, _ in self.handles:
            real.close()
        shutil.rmtree(self.root)


def test_as_real_files() -> None:
    """Every answer, every kind of error, every byte is that of the operating system."""
    # Real syncs take their time.
    fewer = settings(max_examples=max(1, settings().max_examples // 2), stateful_step_count=30)
    run_state_machine_as_test(BothFiles, settings=fewer)


def test_mapping_outlives_names_and_handles() -> None:
    """What is written through a mapping after rename, removal and growth is in the file."""
    files = MemoryFiles()
    file = files.create_new("/a")
    assert file is not None
    file.truncate(8)
    view = file.map(8).view()
    files.rename("/a", "/b")
    reader = files.open("/b")
    file.truncate(1 << 20)
    files.remove("/b")
    view[:3] = b"abc"
    assert b"abc\0" == reader.pread(4, 0)


def test_mapping_is_not_closed_under_a_slice_of_a_view() -> None:
    """A slice keeps the mapping as mmap's own views do."""
    files = MemoryFiles()
    file = files.create_new("/a")
    assert file is not None
    file.truncate(8)
    mapping = file.map(8)
    part = mapping.view()[2:4]
    with pytest.raises(BufferError):
        mapping.close()
    part.release()
    mapping.close()


def test_device_is_full() -> None:
    """Beyond its capacity a file does not grow, and keeps what it has."""
    files = MemoryFiles(capacity_bytes=100)
    file = files.create_new("/a")
    assert file is not None
    file.pwrite(b"x" * 90, 0)
    with pytest.raises(OSError, match="No space left"):
        file.pwrite(b"y" * 20, 90)
    assert b"x" * 90 == file.pread(200, 0)


def test_the_clock_gives_the_modification_time_and_set_modified_changes_it() -> None:
    """Creation, writes and cuts take the clock's time; `set_modified` any, on real files too."""
    now = 1000
    files = MemoryFiles(clock_ms=lambda: now)
    file = files.create_new("/a")
    assert file is not None

    def modified(path: str = "/a") -> int:
        status = files.status(path)
        assert status is not None
        return status.modified_ns

    assert modified() == 1000 * 10**6
    now = 2000
    file.pread(1, 0)
    assert modified() == 1000 * 10**6
    file.pwrite(b"12", 0)
    assert modified() == 2000 * 10**6
    now = 3000
    file.truncate(1)
    assert modified() == 3000 * 10**6
    files.set_modified("/a", 7)
    assert modified() == 7
    with pytest.raises(FileNotFoundError):
        files.set_modified("/b", 7)


def test_real_files_set_the_modification_time(tmp_path: Path) -> None:
    """The time is kept to the nanosecond; a missing file is an error."""
    path = tmp_path / "a"
    path.write_bytes(b"")
    REAL_FILES.set_modified(str(path), 1_600_000_000_123_456_789)
    status = REAL_FILES.status(str(path))
    assert status is not None
    assert status.modified_ns == 1_600_000_000_123_456_789
    with pytest.raises(FileNotFoundError):
        REAL_FILES.set_modified(str(tmp_path / "b"), 7)


def test_directories_are_made_and_removed_alike(tmp_path: Path) -> None:
    """Both make a directory with those above it, and remove an empty one only."""

    def answers(files: Files, root: str) -> list[Any]:
        above, deep = os.path.join(root, "a"), os.path.join(root, "a", "b")
        file = os.path.join(deep, "f")
        files.make_directory(deep)
        files.make_directory(deep)
        files.open(file, writable=True, create=True).close()
        paths = (above, deep, file, deep + "x")
        found = [answer(partial(files.remove_directory, path)) for path in paths]
        found += [answer(partial(files.make_directory, path)) for path in (file, f"{file}/x/y")]
        files.remove(file)
        return [*found, files.remove_directory(deep), files.status(deep)]

    real = answers(REAL_FILES, str(tmp_path))
    assert real == answers(MemoryFiles(), "/")
    assert real[:2] == [False, False]
    assert real[-2:] == [True, None]
