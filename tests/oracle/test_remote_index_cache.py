# SPDX-License-Identifier: Apache-2.0
"""A start of the real cache of remote indexes does what `verify` says of the directory."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Severity
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.releases.pinned import RELEASES
from segproof_harness.releases.remote_index_cache import start_errors

TXN = KAFKA / "txn-a" / "txn-a-0"
CACHE = "remote-log-index-cache"
STEM = "1014_BFyXlC8ySMm-Uzxw5lZSMg"
OTHER = "7_5fEBmixCR5-dMntYSLIr1g"
SUFFIXES = (".index", ".timeindex", ".txnindex")


def _below_base(cache: Path) -> None:
    path = cache / f"{STEM}.index"
    path.write_bytes(path.read_bytes()[:-8] + b"\xff" * 4 + b"\0\xff\xff\xff")


def _cut(cache: Path) -> None:
    path = cache / f"{STEM}.index"
    path.write_bytes(path.read_bytes()[:-1])


FAIL: dict[str, tuple[Callable[[Path], object], str]] = {
    "foreign": (lambda cache: (cache / "README").touch(), "DISK-3"),
    "folder": (lambda cache: (cache / "old").mkdir(), "DISK-3"),
    "cut": (_cut, "OFFIDX-1"),
    "below-base": (_below_base, "OFFIDX-2"),
}
"""What is done to a cache, and the law that it breaks: the start fails."""
REMOVED: dict[str, tuple[Callable[[Path], object], str]] = {
    "incomplete": (lambda cache: (cache / f"{OTHER}.index").touch(), "LOAD-1"),
    "deleted": (lambda cache: (cache / f"{OTHER}.index.deleted").touch(), "LOAD-1"),
    "fetched": (lambda cache: (cache / f"{OTHER}.index.tmp").touch(), "DISK-41"),
}
"""The same, where the start removes the file."""
LEFT_BEFORE_4_1 = ("deleted", "fetched")


@pytest.mark.parametrize(
    "release",
    [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("kafka-4.4.0", "kafka-3.9.2")],
)
def test_starts_fail_and_remove_as_verify_says(release: str, tmp_path: Path) -> None:
    """A sound cache keeps its files; each error stops a start, each note is removed by it."""
    cases = {"sound": None, **FAIL, **REMOVED}
    for name, case in cases.items():
        cache = tmp_path / name / CACHE
        cache.mkdir(parents=True)
        for suffix in SUFFIXES:
            shutil.copyfile(TXN / f"{1014:020}{suffix}", cache / f"{STEM}{suffix}")
        if case is None:
            assert not list(verify(tmp_path / name))
            continue
        case[0](cache)
        found = [one for one in verify(tmp_path / name) if one.law == case[1]]
        severity = Severity.ERROR if name in FAIL else Severity.NOTE
        assert {severity} == {one.severity for one in found}, name
    errors = start_errors(RELEASES[release], [tmp_path / name for name in cases])
    failed = {name for name, error in zip(cases, errors, strict=True) if error is not None}
    assert set(FAIL) == failed
    for name in ("sound", *REMOVED):
        left = {path.name for path in (tmp_path / name / CACHE).iterdir()}
        odd = left - {f"{STEM}{suffix}" for suffix in SUFFIXES}
        assert len(SUFFIXES) == len(left - odd)
        assert len(odd) == (release == "kafka-3.9.2" and name in LEFT_BEFORE_4_1)
