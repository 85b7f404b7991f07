# SPDX-License-Identifier: Apache-2.0
"""segproof: read, write, look up and verify the index and segment files of Kafka.

`segproof.verify` checks files, `segproof.rebuild` makes indexes new, `segproof.salvage`
saves what is sound in damaged logs, `segproof.scan` reads all of them as tables of Arrow,
`segproof.kafka` reads and writes both. The names here load what is behind them when they are first
used, so that `import segproof` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segproof.errors import SegproofError
    from segproof.findings import Finding, Severity, Summary, Verdict
    from segproof.repair import rebuild, salvage
    from segproof.tables.scan import scan
    from segproof.verification import verify

    __version__: str

__all__ = [
    "Finding", "SegproofError", "Severity", "Summary", "Verdict", "rebuild", "salvage", "scan",
    "verify",
]  # fmt: skip

_HOMES = {
    "Finding": "segproof.findings",
    "SegproofError": "segproof.errors",
    "Severity": "segproof.findings",
    "Summary": "segproof.findings",
    "Verdict": "segproof.findings",
    "rebuild": "segproof.repair",
    "salvage": "segproof.repair",
    "scan": "segproof.tables.scan",
    "verify": "segproof.verification",
}


def __getattr__(name: str) -> Any:
    """Load a name of this package when it is first asked for."""
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _version() -> str:
    """Return the version of the installed distribution, or `(not installed)`."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("segproof")
    except PackageNotFoundError:
        return "(not installed)"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
