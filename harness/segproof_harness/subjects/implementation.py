# SPDX-License-Identifier: Apache-2.0
"""The implementation, or a class like it, as a subject; on files in memory or on real ones."""

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from segproof.files import REAL_FILES, File, Files, RealFiles
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.structures.kinds import NAME, hints_of
from segproof_harness.structures.operations import Operation, Value
from segproof_harness.structures.outcomes import Outcome, normalise, of_error
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import Clock, OperationKind, Structure
from segproof_harness.subjects.base import OPENED
from segproof_model.releases import SEGPROOF


class _Place(Protocol):
    """A directory of a subject's own."""

    @property
    def root(self) -> str:
        """Its path."""

    @property
    def files(self) -> Files:
        """Its door to the operating system."""

    def path(self, name: str) -> str:
        """Return the path of a file in it."""

    def images(self) -> dict[str, bytes]:
        """Return all its files."""

    def crash(self) -> None:
        """Close what the process holds open, as its death would."""

    def remove(self) -> None:
        """Remove the directory."""


class _MemoryPlace:
    root = "/subject"

    def __init__(self, contents: Mapping[str, bytes], clock: Clock | None) -> None:
        self.files = MemoryFiles(clock_ms=clock)
        self.files.make_directory(self.root)
        for name, data in contents.items():
            write_file(self.files, self.path(name), data)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def images(self) -> dict[str, bytes]:
        return self.files.images(self.root, with_folders=True)

    def crash(self) -> None:
        pass

    def remove(self) -> None:
        pass


class _TimedFile:
    """A real file that is modified when the subject's clock says."""

    def __init__(self, file: File, clock: Clock, *, is_new: bool) -> None:
        self._file = file
        self._clock = clock
        if is_new:
            self._stamp()

    @property
    def path(self) -> str:
        return self._file.path

    @path.setter
    def path(self, path: str) -> None:
        self._file.path = path

    def pwrite(self, data: bytes | memoryview, position: int) -> None:
        self._file.pwrite(data, position)
        self._stamp()

    def truncate(self, size: int) -> None:
        self._file.truncate(size)
        self._stamp()

    def _stamp(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # removed, and still written to
            REAL_FILES.set_modified(self._file.path, self._clock() * 10**6)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _WatchedFiles(RealFiles):
    """The real files; remembers what is open, so that a crash can close it without the object."""

    def __init__(self, clock: Clock | None) -> None:
        self.handles: list[File] = []
        self._clock = clock

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        is_new = create and self.status(path) is None
        file = super().open(path, writable=writable, create=create)
        return self._watched(file, is_new=is_new)

    def create_new(self, path: str) -> File | None:
        file = super().create_new(path)
        return None if file is None else self._watched(file, is_new=True)

    def _watched(self, file: File, *, is_new: bool) -> File:
        self.handles.append(file)
        if self._clock is None:
            return file
        timed: Any = _TimedFile(file, self._clock, is_new=is_new)
        return cast(File, timed)


def _write(path: str, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(data)


PIECE_BYTES = 1 << 16
_PLACES = itertools.count()


def _read(path: str) -> bytes:
    """Return the bytes of a file, with three calls of the system if they are few."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        data = os.read(descriptor, PIECE_BYTES)
        if len(data) < PIECE_BYTES:
            return data
        with open(descriptor, "rb", buffering=0, closefd=False) as rest:
            return data + rest.readall()
    finally:
        os.close(descriptor)


def _remove_folder(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_folder(entry.path)
            else:
                os.unlink(entry.path)
    os.rmdir(folder)


def _images_below(folder: str, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a folder and of those in it, by name below the first one."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _images_below(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file():
                yield prefix + entry.name, _read(entry.path)


class _RealPlace:
    def __init__(self, contents: Mapping[str, bytes], clock: Clock | None) -> None:
        self.files = _WatchedFiles(clock)
        self._made = f"{tempfile.gettempdir()}/segproof-{os.getpid()}-{next(_PLACES)}"
        os.mkdir(self._made, 0o700)
        self.root = f"{self._made}/t-0"  # Kafka reads topic and partition from such a name
        os.mkdir(self.root)
        for name, data in contents.items():
            if "/" in name:
                Path(self.path(name)).parent.mkdir(parents=True, exist_ok=True)
            _write(self.path(name), data)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def images(self) -> dict[str, bytes]:
        return dict(sorted(_images_below(self.root, "")))

    def crash(self) -> None:
        for handle in self.files.handles:
            handle.close()
        self.files.handles.clear()

    def remove(self) -> None:
        self.crash()
        try:
            _remove_folder(self._made)
        except OSError:  # something else removes files too, or has made one
            shutil.rmtree(self._made, ignore_errors=True)


def _write_changes(place: _Place, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Make files of a place what they are after something broke them."""
    for name in before:
        if name not in after:
            place.files.remove(place.path(name))
    for name, data in after.items():
        if before.get(name) != data:
            write_file(place.files, place.path(name), data)


class ImplementationSubject:
    """A class with the implementation's constructor and methods."""

    def __init__(
        self, structure: Structure, implementation: Any, name: str = "impl", real: bool = False
    ) -> None:
        self.structure = structure
        self.name = name
        self.profile_name = str(getattr(implementation, "profile_name", SEGPROOF.name))
        self._class = implementation
        self._of_error: Callable[[Exception], Outcome] = getattr(
            implementation, "outcome_of_error", of_error
        )
        self._clock = Clock() if structure.takes_clock else None
        self._make_place: Callable[[Mapping[str, bytes], Clock | None], _Place] = (
            _RealPlace if real else _MemoryPlace
        )
        self._is_real = real
        self._place: _Place | None = None
        self._object: Any = None
        self._kinds = structure.by_name()
        own_calls = getattr(implementation, "own_calls", frozenset[str]())
        self._calls = {
            kind.name: kind.call_impl
            for kind in structure.operations
            if kind.call_impl is not None and kind.name not in own_calls
        }
        """What is called where the method of that name won't do."""
        self._names = {
            kind.name: tuple(item.name for item in kind.parameters if item.kind is NAME)
            for kind in self._kinds.values()
        }
        self._names |= {"open": self._names["reopen"], "close": ()}

    def start(self, setup: Setup) -> Outcome:
        """Begin with an own directory, and open."""
        self.stop()
        self._place = self._make_place(setup.files, self._clock)
        return self._open(setup.arguments)

    def _placed(self) -> _Place:
        if self._place is None:
            raise RuntimeError(f"subject {self.name} was not started")
        return self._place

    def _open(self, arguments: Mapping[str, Value]) -> Outcome:
        place = self._placed()
        self._object = None
        if self.structure.damage is not None and arguments.get("damage", True):
            images = place.images()
            _write_changes(place, images, self.structure.damage(arguments, images))
        given = self._with_paths("open", arguments)
        if self.structure.takes_directory:
            given["directory"] = place.root
        if self._clock is not None:
            self._clock.now_ms = given["now_ms"]
            given["clock"] = self._clock
        try:
            self._object = self.structure.open_impl(self._class, given, place.files)
        except Exception as error:
            return self._of_error(error)
        return OPENED

    def _with_paths(self, operation: str, arguments: Mapping[str, Value]) -> dict[str, Any]:
        paths = {name: self._placed().path(str(arguments[name])) for name in self._names[operation]}
        return {**arguments, **paths}

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation."""
        return self.call(operation.name, operation.arguments)

    def call(self, name: str, arguments: Mapping[str, Value]) -> Outcome:
        """Execute one operation, given by its fields."""
        if name in ("reopen", "crash_reopen"):
            return self._reopen(name, arguments)
        if self._object is None:
            return Outcome.NOT_OPEN
        return self._call(name, arguments)

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Outcome:
        kind = self._kinds.get(name)
        if self._names[name]:
            arguments = self._with_paths(name, arguments)
        if kind is not None and not kind.is_plain:
            arguments = kind.arguments_for(arguments, self._hints(kind))
        if kind is not None and kind.sets_clock:
            assert self._clock is not None
            self._clock.now_ms = arguments["now_ms"]
            return Outcome()
        try:
            if name in self._calls:
                answer = self._calls[name](self._object, **arguments)
            else:
                found = getattr(self._object, name)
                answer = found(**arguments) if callable(found) else found
            if kind is not None and kind.show is not None:
                answer = kind.show(answer)
            return Outcome(normalise(answer))
        except Exception as error:
            return self._of_error(error)

    def _hints(self, kind: OperationKind) -> Mapping[str, Any]:
        """Return the types that the class names for arguments, or else the implementation does."""
        if kind.name in self._calls:
            return hints_of(self._calls[kind.name])
        owners = self.structure.impl_class(), self._class
        methods = [getattr(owner, kind.name) for owner in owners if hasattr(owner, kind.name)]
        return {name: hint for method in methods for name, hint in hints_of(method).items()}

    def _reopen(self, name: str, arguments: Mapping[str, Value]) -> Outcome:
        closed = Outcome()
        if name == "reopen" and self._object is not None:
            closed = self._call("close", {})
        self._object = None
        self._placed().crash()
        opened = self._open(arguments)
        return closed if closed.error is not None else opened

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the open object."""
        if self._object is None:
            return {}
        return {name: self._observed(name) for name in self.structure.observed}

    def _observed(self, name: str) -> Outcome:
        try:
            found = getattr(self._object, name)
            return Outcome(normalise(found() if callable(found) else found))
        except Exception as error:
            return self._of_error(error)

    def image(self) -> Mapping[str, bytes]:
        """Return the files of the subject's directory."""
        return self._placed().images()

    def describe(self) -> str:
        """Return the class and where its files are."""
        where = "files of the operating system" if self._is_real else "files in memory"
        return f"{self._class.__module__}.{self._class.__qualname__} on {where}"

    def stop(self) -> None:
        """Close the object and remove the directory."""
        if self._object is not None:
            with contextlib.suppress(Exception):  # whatever it says, it is given up here
                self._object.close()
            self._object = None
        if self._place is not None:
            self._place.remove()
            self._place = None
