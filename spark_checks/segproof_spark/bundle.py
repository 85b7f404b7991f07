# SPDX-License-Identifier: Apache-2.0
"""The bundle: segproof's packages as one zip file, for workers that have not installed it.

Spark puts a zip given by `--py-files` on the path of its Python workers; it also accepts a wheel
silently, but workers can't import from it. The zip contains sources without real data, and is the
same byte for byte for the same sources. The dependencies of segproof (numpy, pyarrow, pandas, a
CRC-32C, ...) have to be installed on the workers.

numba keeps compiled kernels of a zip in the folder NUMBA_CACHE_DIR, or in the user's cache, as it
does for installed packages.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

PACKAGES = ("segproof", "segproof_harness", "segproof_model", "segproof_spark")
KINDS = (".py", ".typed", ".properties", ".json")
"""The endings of bundled files; real data of Kafka and RocketMQ are left out."""
LEFT_OUT = frozenset({"__pycache__", "kafka", "rocketmq"})
"""Folders that are left out below `data`."""
FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can store."""
MODE = 0o644 << 16

SCRIPT = '''# SPDX-License-Identifier: Apache-2.0
"""What spark-submit runs: spark-submit --py-files BUNDLE THIS spark verify PATH..."""

from segproof_harness.cli import main

main()
'''
"""A program for `spark-submit`, which can't run a module of a zip."""

ENTRY_POINTS = """[console_scripts]
segproof = segproof_harness.cli:main

[segproof.commands]
spark = segproof_spark.cli:app

[segproof.demo]
spark = segproof_spark.demo:rows
"""


def write_bundle(target: str | os.PathLike[str]) -> int:
    """Write the bundle and return its size in bytes. Raises: OSError."""
    target = Path(target)
    # Nobody ever finds half a bundle under the name.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_STORED) as bundle:
            for name, data in sorted(_members()):
                entry = zipfile.ZipInfo(name, FIRST_TIME)
                entry.external_attr = MODE
                entry.create_system = 3  # Unix, whatever runs here
                bundle.writestr(entry, data)
        unfinished.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(target)) from None
    finally:
        unfinished.unlink(missing_ok=True)
    return target.stat().st_size


@lru_cache
def digest_of_sources(packages: tuple[str, ...]) -> str:
    """Return a digest of the sources of some packages, the same wherever they are installed."""
    summed = hashlib.sha256()
    for package in packages:
        for name, data in sorted(_below(files(package), package, False)):
            summed.update(f"{name} {len(data)}\n".encode() + data)
    return summed.hexdigest()


def _members() -> Iterator[tuple[str, bytes]]:
    """Yield names and contents."""
    for package in PACKAGES:
        yield from _below(files(package), package, False)
    release = _release()
    folder = f"segproof-{release}.dist-info"
    yield f"{folder}/METADATA", _metadata(release).encode()
    yield f"{folder}/entry_points.txt", ENTRY_POINTS.encode()
    yield "__main__.py", SCRIPT.encode()


def _below(folder: Traversable, name: str, is_data: bool) -> Iterator[tuple[str, bytes]]:
    for one in folder.iterdir():
        inner = f"{name}/{one.name}"
        if one.is_file():
            if one.name.endswith(KINDS):
                yield inner, one.read_bytes()
        elif one.name != "__pycache__" and not (is_data and one.name in LEFT_OUT):
            yield from _below(one, inner, is_data or one.name == "data")


def _release() -> str:
    """Return the release of the sources; 0 where nothing is installed."""
    try:
        return metadata.version("segproof")
    except metadata.PackageNotFoundError:
        return "0"


def _metadata(release: str) -> str:
    return f"Metadata-Version: 2.1\nName: segproof\nVersion: {release}\n"
