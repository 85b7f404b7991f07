# SPDX-License-Identifier: Apache-2.0
"""The processes that are measured: each warms up, then makes one pass for each line it is sent.

A pass is answered with its nanoseconds and a checksum. So passes of Kafka's class, of compiled
kernels and of interpreted ones alternate in one run, on the same file, and their answers are
compared. A missing requirement (Java, Maven, numba) gives a `NotRun` with the reason, never a
silent gap.
"""

import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORAGE, DUMP, ROCKETMQ = "storage", "dump", "rocketmq"
"""The Maven profiles of java/pom.xml."""
PROGRAMS = {
    STORAGE: (("KafkaBench",), "2g"),
    ROCKETMQ: (("RocketmqBench", "RocketmqRebuildBench"), "3g"),
}
"""The program that measures the classes of a profile, and its memory."""


class NotRunError(Exception):
    """The reason why a contestant can't run here."""


@dataclass(slots=True)
class Passes:
    """The times of one contestant's passes."""

    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    """What the process itself computed in each pass; the JVM does not say it."""
    checksum: int | None = None
    peak_memory_bytes: int = 0
    """The most memory that the process had at once; 0 if it did not say."""

    @property
    def of_processor(self) -> "Passes":
        """The same passes by their processor time."""
        return Passes(self.processor_seconds)

    @property
    def median(self) -> float:
        """Seconds of the median pass."""
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        """Seconds of the fastest pass."""
        return min(self.seconds)


class Contestant:
    """One process that makes passes on request."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.passes = Passes()

    def wait_until_ready(self) -> None:
        """Return after the warm-up."""
        if self._answer() != "ready":
            raise RuntimeError("a contestant did not say that it is ready")

    def run(self) -> None:
        """Make one pass. Raises: RuntimeError if its answer is not that of the passes before."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        nanoseconds, checksum, *processor = (int(word) for word in self._answer().split())
        if self.passes.checksum not in (None, checksum):
            raise RuntimeError("two passes over the same file gave different answers")
        self.passes.checksum = checksum
        self.passes.seconds.append(nanoseconds / 1e9)
        self.passes.processor_seconds += [one / 1e9 for one in processor]

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"a contestant ended: {self._process.args!r}")
        return line

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        last = self._process.stdout.readline().split()
        if last[:1] == ["peak"]:
            self.passes.peak_memory_bytes = int(last[1])
        self._process.wait()
        self._process.stdout.close()


def alternate(contestants: Sequence[Contestant], passes: int) -> None:
    """Warm all up, one after the other, let each make a pass in turn `passes` times, end them."""
    try:
        for contestant in contestants:
            contestant.wait_until_ready()
        for _ in range(passes):
            for contestant in contestants:
                contestant.run()
    finally:
        for contestant in contestants:
            contestant.close()


# --- our side


def python_environment(kernels: str) -> dict[str, str]:
    """Return the environment in which a child imports what this process imports."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), *filter(None, sys.path)]),
        "SEGPROOF_KERNELS": kernels,
    }


def missing_kernels(kernels: str) -> str | None:
    """Return why kernels cannot run so here; None if they can."""
    if kernels == "compiled" and importlib.util.find_spec("numba") is None:
        return "numba is not installed (the extra `fast`)"
    return None


def ours(kernels: str, mode: str, warmups: int, *arguments: object) -> Contestant:
    """Start our side; `kernels` is `compiled` or `interpreted`. Raises: NotRunError."""
    if reason := missing_kernels(kernels):
        raise NotRunError(reason)
    words = [sys.executable, "-m", "benchmarks.passes", mode, str(warmups), *map(str, arguments)]
    return Contestant(words, python_environment(kernels))


# --- the other side


class Java:
    """Kafka's and RocketMQ's classes, resolved with Maven and compiled once for a run."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="segproof-bench-java-")
        self._classpaths: dict[str, str] = {}
        self._reasons: dict[str, str] = {}

    def __enter__(self) -> "Java":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def classpath(self, profile: str) -> str:
        """Return the class path of a profile of java/pom.xml. Raises: NotRunError."""
        if profile not in self._classpaths and profile not in self._reasons:
            try:
                self._classpaths[profile] = self._resolve(profile)
            except NotRunError as error:
                self._reasons[profile] = str(error)
        if profile in self._reasons:
            raise NotRunError(self._reasons[profile])
        return self._classpaths[profile]

    def _resolve(self, profile: str) -> str:
        for program in ("java", "javac", "mvn"):
            if shutil.which(program) is None:
                raise NotRunError(f"{program} is not on PATH")
        pom, listing = HERE / "java" / "pom.xml", Path(self._folder.name) / f"{profile}.classpath"
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listing}"]
        self._call(
            ["mvn", "-B", "-q", "-f", str(pom), "-P", profile, *goal],
            f"Maven could not resolve the jars of {profile}",
        )
        path = listing.read_text().strip()
        if profile in PROGRAMS:
            names = PROGRAMS[profile][0]
            sources = [str(HERE / "java" / f"{name}.java") for name in names]
            self._call(
                ["javac", "-d", self._folder.name, "-cp", path, *sources],
                f"javac could not compile {', '.join(names)}",
            )
            path = os.pathsep.join([self._folder.name, path])
        return path

    @staticmethod
    def _call(command: list[str], failure: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            words = (done.stdout + done.stderr).strip().splitlines()
            raise NotRunError(f"{failure}: {words[-1] if words else done.returncode}")

    def contestant(
        self,
        mode: str,
        warmups: int,
        *arguments: object,
        profile: str = STORAGE,
        program: int = 0,
    ) -> Contestant:
        """Start Kafka's class, or RocketMQ's. Raises: NotRunError."""
        words = self._command(profile, program, mode, warmups, *arguments)
        return Contestant(words)

    def run(self, profile: str, program: int, *arguments: object) -> None:
        """Run a program without measuring it. Raises: NotRunError."""
        words = self._command(profile, program, *arguments)
        self._call(words, f"{PROGRAMS[profile][0][program]} failed")

    def _command(self, profile: str, program: int, *arguments: object) -> list[str]:
        path, (programs, memory) = self.classpath(profile), PROGRAMS[profile]
        # RocketMQ writes its logs below the home of the user, and unpacks RocksDB.
        places = [f"-D{name}={self._folder.name}" for name in ("user.home", "java.io.tmpdir")]
        options = [f"-Xmx{memory}", *places, "-cp", path]
        return ["java", *options, programs[program], *map(str, arguments)]
