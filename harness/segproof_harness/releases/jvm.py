# SPDX-License-Identifier: Apache-2.0
"""The JVM of a child process: its classes by name, methods of them that are not public, and what
kind of error an exception is."""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar

from segproof_harness.releases.child_messages import LIBRARIES
from segproof_harness.releases.jpype_alone import jpype
from segproof_harness.releases.pinned import Release
from segproof_harness.structures.outcomes import Outcome, of_error

KINDS = {
    "java.lang.IllegalArgumentException": "invalid-argument",
    "java.lang.IllegalStateException": "illegal-state",
    "java.lang.NullPointerException": "null",
    "java.lang.ArithmeticException": "arithmetic",
    "java.lang.NumberFormatException": "number-format",
    "java.lang.IndexOutOfBoundsException": "index-error",
    "java.util.NoSuchElementException": "index-error",
    "java.lang.OutOfMemoryError": "out-of-memory",
    "java.nio.BufferOverflowException": "buffer-overflow",
    "java.nio.ReadOnlyBufferException": "read-only",
    "java.nio.BufferUnderflowException": "index-error",
    "java.io.FileNotFoundException": "file-not-found",
    "java.nio.file.NoSuchFileException": "file-not-found",
    "java.io.IOException": "io-error",
    "java.io.UncheckedIOException": "io-error",
    "CorruptIndexException": "corrupt-index",
    "CorruptSnapshotException": "corrupt-snapshot",
    "IndexOffsetOverflowException": "index-offset-overflow",
    "LogSegmentOffsetOverflowException": "segment-overflow",
    "InvalidOffsetException": "invalid-offset",
    "OffsetsOutOfOrderException": "offset-order",
    "UnexpectedAppendOffsetException": "offset-order",
    "org.apache.kafka.common.errors.OffsetOutOfRangeException": "out-of-range",
    "org.apache.kafka.common.errors.CorruptRecordException": "corrupt-record",
    "org.apache.kafka.common.errors.InvalidTxnStateException": "invalid-transaction-state",
    "org.apache.kafka.common.errors.InvalidProducerEpochException": "invalid-producer-epoch",
    "org.apache.kafka.common.errors.ProducerFencedException": "invalid-producer-epoch",
    "org.apache.kafka.common.errors.OutOfOrderSequenceException": "out-of-order-sequence",
    "org.apache.kafka.common.errors.RecordBatchTooLargeException": "record-batch-too-large",
    "org.apache.kafka.common.errors.RecordTooLargeException": "record-too-large",
    "org.apache.kafka.common.errors.InvalidTimestampException": "invalid-timestamp",
    "org.apache.kafka.common.InvalidRecordException": "invalid-record",
    "org.apache.kafka.common.record.InvalidRecordException": "invalid-record",
    "org.apache.kafka.common.KafkaException": "kafka-error",
}
"""The kind of error of a class of exceptions: by its whole name, or by its last part."""


class Jvm:
    """The JVM of this process, with the classes of one release. There is one in a process."""

    def __init__(
        self, release: Release, class_path: Sequence[Path], folders: Iterable[Path] = ()
    ) -> None:
        self.release = release
        jpype.startJVM(
            *release.java_options,
            f"-Duser.home={tempfile.gettempdir()}",
            f"-Djava.io.tmpdir={os.environ.get(LIBRARIES) or tempfile.gettempdir()}",
            classpath=[*map(str, folders), *map(str, class_path)],
            convertStrings=True,
        )
        self._classes: dict[str, Any] = {}
        self._first: dict[tuple[str, ...], Any] = {}
        self._fields: dict[tuple[type, str], Any] = {}

    def java(self, name: str) -> Any:
        """Return a Java class by its whole name. Raises TypeError where there is none."""
        if name not in self._classes:
            self._classes[name] = jpype.JClass(name)
        return self._classes[name]

    def first(self, *names: str) -> Any:
        """Return the first of these classes that the release has: classes move.

        Raises: LookupError if it has none of them.
        """
        if names not in self._first:
            self._first[names] = self._found_first(names)
        return self._first[names]

    def _found_first(self, names: tuple[str, ...]) -> Any:
        for name in names:
            try:
                return self.java(name)
            except TypeError:
                continue
        raise LookupError(f"{self.release.name} has none of {', '.join(names)}")

    @cached_property
    def file(self) -> Any:
        """`java.io.File`."""
        return self.java("java.io.File")

    @staticmethod
    def to_bytes(data: bytes) -> Any:
        """Return bytes as a Java array."""
        return byte_array()(data)

    def field(self, owner: Any, name: str) -> Any:
        """Return a private field of a Java object, inherited ones too.

        Raises: LookupError without such a field.
        """
        return self._declared(owner, name).get(owner)

    def set_field(self, owner: Any, name: str, value: Any) -> None:
        """Set a private field of a Java object, inherited ones too.

        Raises: LookupError without such a field.
        """
        self._declared(owner, name).set(owner, value)

    def _declared(self, owner: Any, name: str) -> Any:
        """Return a field of an object's class; finding it is slow, so it is kept."""
        key = type(owner), name
        if key not in self._fields:
            self._fields[key] = _found_field(owner, name)
        return self._fields[key]


def _found_field(owner: Any, name: str) -> Any:
    kind = owner.getClass()
    while kind is not None:
        try:
            found = kind.getDeclaredField(name)
        except jpype.JException:
            kind = kind.getSuperclass()
            continue
        found.setAccessible(True)
        return found
    raise LookupError(f"{owner.getClass().getName()} has no field {name}")


@cache
def reflected(kind: Any, name: str, *types: Any) -> Any:
    """Return a method of a class that is not public, to be called by `invoked`.

    Raises: LookupError without it.
    """
    try:
        found = kind.class_.getDeclaredMethod(name, *types)
    except jpype.JException:
        raise LookupError(f"{kind.class_.getName()} has no method {name}") from None
    found.setAccessible(True)
    return found


@cache
def constructor(kind: Any, *types: Any) -> Any:
    """Return a constructor of a class that is not public; its `newInstance` makes an object."""
    found = kind.class_.getDeclaredConstructor(*types)
    found.setAccessible(True)
    return found


def invoked(method: Any, target: Any, *arguments: Any) -> Any:
    """Call a method that is `reflected`; what it raises is raised here."""
    try:
        return method.invoke(target, *arguments)
    except jpype.JClass("java.lang.reflect.InvocationTargetException") as error:
        raise error.getCause() from None


def caught(jvm: Jvm, kind: Any, name: str, *types: Any) -> Any:
    """Return a method of a class as a function that returns what the method throws, or None.

    It takes the object first, and arguments that are Java's. Java catches the exception: one that
    comes through JPype takes three times as long. The method itself returns nothing.

    Raises: LookupError without it.
    """
    handles = jvm.java("java.lang.invoke.MethodHandles")
    thing, thrown = jvm.java("java.lang.Object").class_, jvm.java("java.lang.Throwable").class_
    method = handles.publicLookup().unreflect(reflected(kind, name, *types))
    handler = handles.identity(thing).asType(
        jvm.java("java.lang.invoke.MethodType").methodType(thing, thrown)
    )
    returning = method.asType(method.type().changeReturnType(thing))
    return handles.catchException(returning, thrown, handler).invokeWithArguments


def plain(value: Any) -> Any:
    """Return a number, flag or text of Java as Python's; null is None."""
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else str(value)


def kind_of(error: jpype.JException, own: Mapping[str, str]) -> str:
    """Return the kind of error of an exception: `own` kinds first, the nearest class first."""
    kind = error.getClass()
    first = str(kind.getName())
    while kind is not None:
        name = str(kind.getName())
        short = name.rpartition(".")[2]
        for kinds in (own, KINDS):
            for key in (name, short):
                if key in kinds:
                    return kinds[key]
        kind = kind.getSuperclass()
    return f"unexpected:{first}"


class Adapter:
    """The real class with the implementation's constructor and methods: what all adapters share.

    A subclass is made for each JVM, with `jvm` set. Its methods may raise Java's exceptions.
    """

    jvm: ClassVar[Jvm]
    kinds: ClassVar[Mapping[str, str]] = {}
    """What `KINDS` does not say, or says otherwise, for this structure."""
    left_out: ClassVar[frozenset[str]] = frozenset()
    """Operations that the real class has not; histories for it are drawn without them."""

    unobserved: ClassVar[frozenset[str]] = frozenset()
    """Accessors that the real class has not; they are not compared."""

    own_calls: ClassVar[frozenset[str]] = frozenset()
    """Operations whose arguments the class takes as they are drawn, without the description's call
    for implementations."""

    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What the real object, `_real`, has under another name: the first of these that it knows. It
    takes the same arguments and answers null, a flag, a number or a text."""

    def __getattr__(self, name: str) -> Any:
        """Return what calls the real object."""
        if name not in self.calls:
            raise AttributeError(name)
        real = self._real
        call = next(getattr(real, known) for known in self.calls[name] if hasattr(real, known))
        return lambda **arguments: plain(call(*arguments.values()))

    @classmethod
    def outcome_of_error(cls, error: Exception) -> Outcome:
        """Return the outcome of an exception of Java or Python."""
        key = cls, type(error)
        kind = _KNOWN_KINDS.get(key)
        if kind is None:
            if not isinstance(error, jpype.JException):
                return of_error(error)
            kind = _KNOWN_KINDS[key] = kind_of(error, cls.kinds)
        return Outcome(None, kind, str(error))


def camel_case(name: str) -> str:
    """Return a name as Java spells it.

    >>> camel_case("size_in_bytes")
    'sizeInBytes'
    """
    return re.sub("_(.)", lambda match: match[1].upper(), name)


def named_alike(*names: str) -> dict[str, tuple[str, ...]]:
    """Return `calls` of what Java names as we do, in camel case."""
    return {name: (camel_case(name),) for name in names}


@cache
def byte_array() -> Any:
    """Return Java's type `byte[]`, which takes long to make."""
    return jpype.JArray(jpype.JByte)


_KNOWN_KINDS: dict[tuple[type[Adapter], type[Exception]], str] = {}
"""What `kind_of` said of a class of exceptions, for an adapter: asking Java is slow."""
