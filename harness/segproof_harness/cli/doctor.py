# SPDX-License-Identifier: Apache-2.0
"""The verb `doctor`: what works on this machine, what is not run here, and what to do about it."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata, util
from pathlib import Path

from segproof_harness.cli.common import Format, FormatOption, cores, release, write_prose, write_row
from segproof_harness.releases.java_version import REMEDY, java_problem, java_version

WORKS, NOT_RUN = "works", "not run"
MODULES = {
    "numba": ("'segproof[fast]'", "inner loops run interpreted: right, but slower on large files"),
    "google_crc32c": ("'segproof[fast]'", "many small batches are summed one call at a time"),
    "hypothesis": ("'segproof[testing]'", "the stateful machines can't run"),
    "crosshair": ("--group contracts, in a checkout", "the contracts can't be confirmed"),
    "z3": ("--group proofs, in a checkout", "the proofs can't be run again"),
    "pyspark": ("'segproof[spark]'", "segproof spark can't run"),
    "pyarrow": ("'segproof[arrow]'", "segproof.scan, spark and Parquet files can't be used"),
    "pandas": ("'segproof[spark]'", "segproof spark can't run"),
    "jpype": ("'segproof[oracle]'", "the real releases can't be asked"),
}
"""Optional modules: what pip is told to install for each, and what is missing without it."""
DISTRIBUTIONS = {
    "crosshair": "crosshair-tool",
    "google_crc32c": "google-crc32c",
    "jpype": "JPype1",
    "z3": "z3-solver",
}
NO_MAVEN = "the jars of the releases can't be fetched, nor the JVM side of the benchmarks built"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: str
    """`works` or `not run`."""
    detail: str
    remedy: str | None = None


def command(output_format: FormatOption = Format.TEXT) -> None:
    """Show what works on this machine.

    A line with `not run` gives the reason and the remedy.

    \b
    Examples:
      segproof doctor
      segproof doctor --format jsonl
    """
    for check in checks():
        if output_format is Format.JSONL:
            remedy = None if check.remedy is None else check.remedy.replace("`", "")
            write_row({**asdict(check), "remedy": remedy}, output_format)
            continue
        write_prose(f"{check.name:14} {check.state:8} {check.detail}", indent=24)
        if check.remedy:
            write_prose(f"{'':14} {'':8} remedy: {check.remedy}", indent=24)


def checks() -> Iterator[Check]:
    """Look at everything, in the order shown."""
    yield Check("segproof", WORKS, release())
    yield _python()
    yield Check("machine", WORKS, _machine())
    yield from (_core(name) for name in ("numpy", "awscrt", "cramjam", "xxhash"))
    yield from (_optional(name) for name in MODULES)
    yield _kernels()
    yield _proofs()
    java = java_version()
    yield _java(java)
    yield _spark(java)
    yield _program("mvn", NO_MAVEN, "install Maven 3.9")
    yield _oracle()
    yield _jars()


def _python() -> Check:
    found = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    return Check("python", WORKS, found)


def _machine() -> str:
    return f"{_processor()}, {cores()} cores, {platform.system()} {platform.release()}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1].strip() if named else platform.machine()


def _core(name: str) -> Check:
    try:
        import_module(name)
    except ImportError as error:
        return Check(name, NOT_RUN, str(error), "`pip install --force-reinstall segproof`")
    return Check(name, WORKS, _version_of(name))


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown version"


def _optional(name: str) -> Check:
    wanted, missing = MODULES[name]
    if util.find_spec(name) is None:
        return Check(name, NOT_RUN, missing, f"`pip install {wanted}`")
    return Check(name, WORKS, _version_of(DISTRIBUTIONS.get(name, name)))


def _proofs() -> Check:
    from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED

    kernels = len(CLAIMS) + len(NOT_PROVED)
    proved = f"{len(CLAIMS)} of {kernels} kernels are proved for every length"
    return Check(
        "proofs", WORKS, f"{proved}; again: `python -m pytest tests/proofs`, in a checkout"
    )


def _kernels() -> Check:
    from segproof.kernels.dispatch import kernel_mode, numba_available

    try:
        mode = kernel_mode()
    except ValueError as error:
        return Check("kernels", NOT_RUN, str(error), "unset SEGPROOF_KERNELS")
    if mode == "interpreted" or not numba_available():
        why = (
            "SEGPROOF_KERNELS says so"
            if mode == "interpreted"
            else "numba is missing, or not used here"
        )
        return Check("kernels", WORKS, f"interpreted: {why}")
    return Check("kernels", WORKS, f"{mode}: compiled where it pays; cache: {_kernel_cache()}")


def _kernel_cache() -> str:
    from segproof.kernels.dispatch import cache_folder

    folder = cache_folder()
    return f"{folder} ({'filled' if os.path.isdir(folder) else 'empty'})"


def _java(version: int | None) -> Check:
    problem = java_problem(version)
    if problem is not None:
        return Check("java", NOT_RUN, problem, REMEDY)
    return Check("java", WORKS, f"Java {version}")


def _spark(java: int | None) -> Check:
    absent = [name for name in ("pyspark", "pyarrow", "pandas") if util.find_spec(name) is None]
    if absent:
        return Check("spark", NOT_RUN, f"no {', '.join(absent)}", "`pip install 'segproof[spark]'`")
    if java_problem(java) is not None:
        return Check("spark", NOT_RUN, "no Java that is new enough", "see java")
    return Check("spark", WORKS, f"pyspark {_version_of('pyspark')} on Java {java}")


def _oracle() -> Check:
    """Look at the real releases: all of them must be there to read `works`."""
    from segproof_harness.releases.jars import jar_folder
    from segproof_harness.releases.pinned import RELEASES
    from segproof_harness.releases.readiness import readiness, readiness_of_machine

    machine = readiness_of_machine()
    if not machine.is_ready:
        return Check("oracle", NOT_RUN, machine.state.removeprefix("not run: "), machine.remedy)
    ready = sum(readiness(release).is_ready for release in RELEASES.values())
    found = f"{ready} of {len(RELEASES)} releases in {jar_folder()}"
    if ready < len(RELEASES):
        return Check("oracle", NOT_RUN, found, "`segproof oracle fetch`")
    return Check("oracle", WORKS, found)


def _program(name: str, missing: str, remedy: str) -> Check:
    found = shutil.which(name)
    return Check(name, WORKS, found) if found else Check(name, NOT_RUN, missing, remedy)


def _jars() -> Check:
    folder = Path(os.path.expanduser("~")) / ".m2" / "repository" / "org" / "apache" / "kafka"
    count = len(list(folder.glob("**/*.jar")))
    if not count:
        missing = "no Kafka jars fetched yet; only the benchmarks use them"
        return Check("jars", NOT_RUN, missing, "segproof bench, in a checkout, with Maven")
    return Check("jars", WORKS, f"{count} of Kafka in {folder}")
