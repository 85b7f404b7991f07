# SPDX-License-Identifier: Apache-2.0
"""The child's side of the oracle: run operations on the real classes of one release.

Started as `python -m segproof_harness.releases.child RELEASE DESCRIPTOR`; answers what comes over
the socket with that descriptor. Standard output and error are the log: what the JVM prints is no
answer. A watchman beside keeps the log short, and ends the process when the parent has gone, even
from the middle of a call that does not end.
"""

import contextlib
import gc
import os
import resource
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from pickle import PicklingError
from typing import Any, NoReturn

from segproof_harness.releases.child_messages import (
    ADAPTERS,
    LIBRARIES,
    SCRATCH_PREFIX,
    Absent,
    Failed,
    Look,
    PlainCall,
    PlainSeen,
    PlainSetup,
    plain_seen,
)
from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.jvm import Adapter, Jvm
from segproof_harness.releases.pinned import release_named
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.implementation import ImplementationSubject

LOG_DESCRIPTOR = 1
LOG_BYTES_MAX = 1 << 20
WATCH_SECONDS = 0.2
LEAVING = threading.Lock()
HISTORIES_A_COLLECTION = 500
"""How often garbage is collected, Python's too: its own pace asks the JVM each time whether to
join. Old releases keep mappings and descriptors until the JVM does."""


class Runner:
    """The subjects of one JVM, by structure."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm
        self._subjects: dict[str, ImplementationSubject] = {}
        self._now: ImplementationSubject | None = None
        self._histories = 0

    def adapter(self, structure_id: str) -> type[Adapter]:
        """Return the adapter's class for this JVM."""
        module, _, name = ADAPTERS[structure_id].partition(":")
        base: type[Adapter] = getattr(import_module(module), name)
        return type(name, (base,), {"jvm": self._jvm})

    def subject(self, structure_id: str) -> ImplementationSubject:
        """Return the subject of a structure, made at the first call."""
        if structure_id not in self._subjects:
            adapter = self.adapter(structure_id)
            structure = structure_named(structure_id)
            observed = tuple(name for name in structure.observed if name not in adapter.unobserved)
            structure = replace(structure, observed=observed)
            self._subjects[structure_id] = ImplementationSubject(
                structure, adapter, self._jvm.release.name, real=True
            )
            gc.freeze()  # it stays, and need not be looked through
        return self._subjects[structure_id]

    def absent(self, structure_id: str) -> Absent:
        """Return what the real class has not."""
        adapter = self.adapter(structure_id)
        return Absent(adapter.left_out, adapter.unobserved)

    def history(
        self,
        structure_id: str,
        setup: PlainSetup,
        calls: Sequence[PlainCall],
        image_every: int,
    ) -> list[PlainSeen]:
        """Run a whole history; return what was seen at the opening and after each operation."""
        self._clean_up()
        subject = self.subject(structure_id)
        seen = [plain_seen(subject.start(Setup(*setup)), self._look(subject))]
        last = len(calls)
        for step, (name, arguments) in enumerate(calls, 1):
            outcome = subject.call(name, arguments)
            looks = step % image_every == 0 or step == last
            seen.append(plain_seen(outcome, self._look(subject) if looks else None))
        subject.stop()
        return seen

    def _clean_up(self) -> None:
        """Give back what earlier histories left, at every so many of them."""
        self._histories += 1
        if self._histories % HISTORIES_A_COLLECTION == 0:
            gc.collect()
            self._jvm.java("java.lang.System").gc()

    @staticmethod
    def _look(subject: ImplementationSubject) -> Look:
        return Look(dict(subject.observe()), dict(subject.image()))

    def start(self, structure_id: str, setup: Setup) -> Any:
        """Begin a history that comes step by step."""
        self._clean_up()
        self._now = self.subject(structure_id)
        return self._now.start(setup)

    def apply(self, operation: Operation) -> Any:
        """Execute one operation of it."""
        assert self._now is not None
        return self._now.apply(operation)

    def look(self) -> Look:
        """Return the accessors and files as they are."""
        assert self._now is not None
        return self._look(self._now)

    def stop(self) -> None:
        """End it."""
        if self._now is not None:
            self._now.stop()
            self._now = None


def serve(pipe: Connection, runner: Runner) -> None:
    """Answer until the parent goes away."""
    calls: Mapping[str, Callable[..., Any]] = {
        "history": runner.history,
        "start": runner.start,
        "apply": runner.apply,
        "look": runner.look,
        "stop": runner.stop,
        "absent": runner.absent,
    }
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            name, arguments = pipe.recv()
            try:
                answer = calls[name](*arguments)
            except Exception:
                answer = Failed(traceback.format_exc())
            try:
                pipe.send(answer)
            except (TypeError, AttributeError, PicklingError):
                # An object of Java that an adapter has let through.
                pipe.send(Failed(traceback.format_exc()))


def watch(parent: int) -> None:
    """Cut the log when it is long; leave when the process `parent` is no longer our parent."""
    while os.getppid() == parent:
        if os.fstat(LOG_DESCRIPTOR).st_size > LOG_BYTES_MAX:
            os.ftruncate(LOG_DESCRIPTOR, 0)  # it is written at its end: it begins anew
        time.sleep(WATCH_SECONDS)
    leave()


def leave() -> NoReturn:
    """End this process, whatever threads the JVM still has; nobody else removes its files."""
    LEAVING.acquire()  # both threads may come here, and neither must end the other halfway
    for variable in ("TMPDIR", LIBRARIES):
        folder = Path(os.environ.get(variable, ""))
        if folder.name.startswith(SCRATCH_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def main() -> None:
    """Start the JVM, say so, and serve."""
    name, descriptor = sys.argv[1], int(sys.argv[2])
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.disable()
    release = release_named(name)
    with Connection(descriptor) as pipe:
        try:
            runner = Runner(Jvm(release, class_path(release), extra_folders(release)))
        except Exception as error:
            pipe.send(Failed(f"{type(error).__name__}: {error}"))
            os._exit(1)  # the parent still wants to read the log
        pipe.send("ready")
        serve(pipe, runner)
    leave()


if __name__ == "__main__":
    main()
