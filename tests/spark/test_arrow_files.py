# SPDX-License-Identifier: Apache-2.0
"""Files behind URLs: the verifier finds there what it finds in the same directory."""

import errno
import importlib.util
import itertools
import os
import pickle
import random
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from segproof.verification import verify

pytest.importorskip("pyarrow", reason="not run: pyarrow is not installed")

from pyarrow import fs
from tests.spark.clusters import HOST, WAIT_SECONDS, free_port, wait_until

from segproof_spark import arrow_files
from segproof_spark.arrow_files import ArrowFiles, expand, files_of, is_url, shown
from segproof_tests.real_copies import copy_of, flip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNIT = 1 << 10
BUCKETS = itertools.count()


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Return a folder with a damaged partition, and a store, in one folder."""
    folder = tmp_path / "dumps-2026"
    partition = copy_of("kafka/plain/plain-0", folder / "kafka" / "plain-0")
    copy_of("rocketmq/rolled-4.9.8/store", folder / "store")
    flip(next(partition.glob("*252.index")), 3)
    return folder


def found_below(place: str) -> list[str]:
    """Return the findings of a place, with its own name taken out of them."""
    opened, path = files_of(place)
    found = (finding.to_json() for finding in verify(path, files=opened))
    return sorted(repr(finding).replace(path, "PLACE") for finding in found)


def test_same_findings_by_a_url_of_files(dumps: Path) -> None:
    """The local file system of Arrow shows what the operating system shows."""
    local = found_below(str(dumps))
    assert any("'error'" in finding for finding in local)
    assert local == found_below(dumps.as_uri())


@pytest.fixture(scope="module")
def store_address(
    tmp_path_factory: pytest.TempPathFactory, not_run: Callable[[str], NoReturn]
) -> Iterator[str]:
    """Return HOST:PORT of a server that speaks as S3 does, or end the test as not run.

    SEGPROOF_MOTO_SERVER may name the program of another environment.
    """
    if program := os.environ.get("SEGPROOF_MOTO_SERVER"):
        command = [program]
    elif importlib.util.find_spec("moto") is not None:
        command = [sys.executable, "-m", "moto.server"]
    else:
        not_run("moto is not installed; the dependency group `object_stores` has it")
    port = free_port()
    path = tmp_path_factory.mktemp("moto") / "log"
    with path.open("wb") as log:
        server = subprocess.Popen(
            [*command, "-H", HOST, "-p", str(port)], stdout=log, stderr=log, cwd=path.parent
        )
    try:
        wait_until(lambda: b"Running on" in path.read_bytes(), "moto's server")
        yield f"{HOST}:{port}"
    finally:
        server.terminate()
        server.wait()


def put(url: str, data: bytes) -> None:
    """Store data under a URL."""
    kind = {"Content-Type": "application/octet-stream"}  # as a form, moto would wait for its end
    request = urllib.request.Request(url, data, kind, method="PUT")
    with urllib.request.urlopen(request, timeout=WAIT_SECONDS):
        pass


@pytest.fixture
def bucket(store_address: str, dumps: Path) -> str:
    """Return the URL of a bucket that holds the dumps; its query tells how to reach it."""
    query = f"endpoint_override={store_address}&scheme=http&region=us-east-1"
    bucket = f"here-{next(BUCKETS)}"
    put(f"http://{store_address}/{bucket}", b"")
    for path in dumps.rglob("*"):
        if path.is_file():
            name = path.relative_to(dumps.parent)
            put(f"http://{store_address}/{bucket}/{name}", path.read_bytes())
    return f"s3://key:secret@{bucket}/dumps-2026?{query}"


def test_same_findings_in_an_object_store(bucket: str, dumps: Path) -> None:
    """A bucket by its URL; nothing that is found shows the secret or the query."""
    found = found_below(bucket)
    assert found_below(str(dumps)) == found
    assert "secret" not in repr(found)
    opened, path = files_of(bucket)
    assert bucket.partition("?")[0].replace("key:secret@", "") == path
    again = pickle.loads(pickle.dumps(opened))
    assert opened.list_directory(path) == again.list_directory(path) == ["kafka", "store"]


def test_same_findings_on_spark(spark: "SparkSession", bucket: str, dumps: Path) -> None:
    """The workers read the bucket; what a finding tells to run names Spark, and no secret."""
    from segproof_spark.verification import verify_on_spark

    path = files_of(bucket)[1]
    local = [finding.to_json() for finding in verify(dumps)]
    found = [dict(finding) for finding in verify_on_spark(spark, [bucket])]
    assert "secret" not in repr(found)
    for finding in found:
        words = shlex.split(str(finding["reproduce"]))
        assert ["segproof", "spark", "verify"] == words[:3]
        assert words[3].startswith(path)
    for finding in (*local, *found):
        del finding["reproduce"]
    there = repr(sorted(found, key=repr)).replace(path, "PLACE")
    here = repr(sorted(local, key=repr)).replace(str(dumps), "PLACE")
    # A command that needs a directory of this machine has no place in a bucket to name.
    assert re.sub(r"`segproof (rebuild|salvage) [^`]*`", r"`segproof \1`", here) == there


def test_patterns_in_an_object_store(bucket: str) -> None:
    """What matches keeps the query and the secret, which opening it needs."""
    place, _, query = bucket.partition("?")
    base = place.rpartition("/")[0]
    found = expand([f"{base}/dumps*/*/[o-q]lain-*?{query}", f"{base}/*/kafka/p*?{query}"])
    assert [f"{place}/kafka/plain-0?{query}"] * 2 == found
    with pytest.raises(FileNotFoundError, match="nothing matches") as raised:
        expand([f"{base}/*/none*?{query}"])
    assert shown(f"{base}/*/none*") == raised.value.filename
    assert "secret" not in str(raised.value)


def test_a_store_that_does_not_answer(dumps: Path) -> None:
    """One error with the place, and without the secret."""
    query = f"endpoint_override={HOST}:{free_port()}&scheme=http&region=us-east-1"
    opened, path = files_of(f"s3://key:secret@here/dumps?{query}")
    with pytest.raises(OSError, match="s3://here/dumps") as raised:
        opened.status(path)
    assert errno.EIO == raised.value.errno
    assert "secret" not in str(raised.value)


def test_patterns(tmp_path: Path) -> None:
    """Paths and URLs are expanded alike; names that are there are taken as they are."""
    for name in ("a-0", "a-1", "b-0", "[x]"):
        (tmp_path / name).mkdir()
    (tmp_path / "a-0" / "file").touch()
    url = tmp_path.as_uri()
    assert [f"{tmp_path}/a-0", f"{tmp_path}/a-1"] == expand([f"{tmp_path}/a-?"])
    assert [f"{url}/a-0", f"{url}/a-1"] == expand([f"{url}/a-*"])
    assert [f"{url}/a-0/file"] == expand([f"{url}/*/f[h-j]le"])
    assert [f"{tmp_path}/[x]", f"{tmp_path}/none"] == expand(
        [f"{tmp_path}/[x]", f"{tmp_path}/none"]
    )
    for pattern in (f"{tmp_path}/c*", f"{url}/c*", f"{url}/none/*", f"{url}/a-0/file/*"):
        with pytest.raises(FileNotFoundError, match="nothing matches") as raised:
            expand([pattern])
        assert pattern == raised.value.filename


def test_names_are_quoted_as_urls_quote_them(tmp_path: Path) -> None:
    """Blanks, percent signs and letters beyond ASCII, in what is given and in what is listed."""
    folder = tmp_path / "a b%20"
    folder.mkdir()
    (folder / "\u00e4#?").write_bytes(b"abc")
    for url in (tmp_path.as_uri(), folder.as_uri()):
        opened, root = files_of(url)
        assert url == root
        (name,) = opened.list_directory(folder.as_uri())
        assert "%C3%A4%23%3F" == name
        assert b"abc" == opened.open(f"{folder.as_uri()}/{name}").pread(3, 0)
    assert [f"{folder.as_uri()}/{name}"] == expand([f"{tmp_path.as_uri()}/a%20*/*"])


def test_errors_are_those_of_the_operating_system(tmp_path: Path) -> None:
    """Each has a number and the path, whatever words Arrow has."""
    (tmp_path / "file").write_bytes(b"abc")
    opened, root = files_of(tmp_path.as_uri())
    file = opened.open(f"{root}/file")
    calls: list[tuple[int, Callable[[], Any]]] = [
        (errno.ENOENT, lambda: opened.open(f"{root}/none")),
        (errno.EISDIR, lambda: opened.open(root)),
        (errno.ENOENT, lambda: opened.list_directory(f"{root}/none")),
        (errno.ENOTDIR, lambda: opened.list_directory(f"{root}/file")),
        (errno.EINVAL, lambda: file.pread(1, -1)),
        (errno.EINVAL, lambda: files_of("nope://place")),
        (errno.EINVAL, lambda: files_of("s3://key:secret@here/x?nope=1")),
        (errno.EINVAL, lambda: files_of("file:///x#part")),
    ]
    for number, call in calls:
        with pytest.raises(OSError) as raised:
            call()
        assert number == raised.value.errno
        assert "secret" not in str(raised.value)
    assert opened.status(f"{root}/none") is None
    assert b"bc" == file.pread(9, 1)
    assert b"" == file.pread(9, 3) == file.pread(0, 0)


def test_nothing_is_written(tmp_path: Path) -> None:
    """Every way to write is refused in words."""
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    opened, root = files_of(path.as_uri())
    file = opened.open(root)
    calls: list[Callable[[], Any]] = [
        lambda: opened.open(root, writable=True),
        lambda: opened.open(root, create=True),
        lambda: opened.create_new(root),
        lambda: opened.rename(root, root),
        lambda: opened.link(root, root),
        lambda: opened.remove(root),
        lambda: opened.set_modified(root, 0),
        lambda: opened.sync_directory(root),
        lambda: opened.make_directory(root),
        lambda: opened.remove_directory(root),
        lambda: file.pwrite(b"x", 0),
        lambda: file.truncate(0),
        lambda: file.map(3),
        file.sync,
    ]
    for call in calls:
        with pytest.raises(OSError, match="read only") as raised:
            call()
        assert (errno.EROFS, root) == (raised.value.errno, raised.value.filename)
    assert b"abc" == path.read_bytes()


def test_places() -> None:
    """A path is made absolute; a URL is shown without its query and without a secret."""
    assert not is_url("/var/lib/kafka")
    assert not is_url("dumps/a")
    assert is_url("abfss://dumps@account.dfs.core.windows.net/a")
    assert os.path.abspath("x") == files_of("x")[1]
    assert "s3://b/a" == shown("s3://key:secret@b/a?region=eu")
    assert "abfss://c@account/a" == shown("abfss://c:secret@account/a")


def test_a_file_system_that_is_given(tmp_path: Path) -> None:
    """One that Arrow can't open by a URL is handed over, and travels to workers."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"abc")
    given = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    opened = pickle.loads(pickle.dumps(ArrowFiles("own:///a", given)))
    assert "own:///a" == opened.root
    assert ["b"] == opened.list_directory(opened.root)
    assert b"abc" == opened.open("own:///a/b").pread(3, 0)
    mock = ArrowFiles("mock:///a")
    assert mock.status(mock.root) is None


class Source:
    """What Arrow opens, which counts its reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.sizes: list[int] = []

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self.data)

    def seek(self, position: int) -> None:
        """Go to a position."""
        self.at = position

    def read(self, size: int) -> bytes:
        """Read from there."""
        self.sizes.append(size)
        return self.data[self.at : self.at + size]

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let units be small, so that small files have many."""
    monkeypatch.setattr(arrow_files, "UNIT_BYTES", UNIT)
    monkeypatch.setattr(arrow_files, "AHEAD_BYTES", 8 * UNIT)


def opened_source(data: bytes, cache_bytes: int) -> tuple[Any, Source, Any]:
    """Return a file, its source and its cache."""
    source, cache = Source(data), arrow_files._Cache(cache_bytes)
    return arrow_files._ArrowFile(source, "x", cache), source, cache


@pytest.mark.usefixtures("small_units")
def test_whatever_is_read_is_what_is_there() -> None:
    """Ranges anywhere, also behind the end, in any order, with a cache smaller than the file."""
    chance = random.Random(7)
    data = chance.randbytes(40 * UNIT + 13)
    file, _, cache = opened_source(data, 6 * UNIT)
    for _ in range(2000):
        at, size = chance.randrange(len(data) + 9), chance.randrange(5 * UNIT)
        assert data[at : at + size] == file.pread(size, at)
        assert cache._size <= 6 * UNIT
        assert cache._size == sum(len(unit) for unit in cache._units.values())
    file.close()
    assert 0 == cache._size == len(cache._units)


@pytest.mark.usefixtures("small_units")
def test_reading_on_and_on_takes_few_requests() -> None:
    """Read ahead doubles up to its most, and each byte is fetched once; here and there, a unit."""
    data = bytes(64 * UNIT)
    file, source, _ = opened_source(data, 16 * UNIT)
    for at in range(0, len(data), 100):
        file.pread(100, at)
    assert [1, 2, 4, 8, 8] == [size // UNIT for size in source.sizes[:5]]
    assert len(data) == sum(source.sizes)
    file, source, _ = opened_source(data, 16 * UNIT)
    for at in (50 * UNIT, 3 * UNIT, 40 * UNIT):
        file.pread(10, at)
    assert [UNIT, UNIT, UNIT] == source.sizes


@pytest.mark.usefixtures("small_units")
def test_a_file_that_has_become_shorter() -> None:
    """Fewer bytes, and no endless loop."""
    file, source, _ = opened_source(bytes(4 * UNIT), 16 * UNIT)
    source.data = bytes(UNIT + 5)
    assert UNIT + 5 == len(file.pread(4 * UNIT, 0))


def test_an_error_of_a_store_is_told_with_its_path() -> None:
    """Rights that are missing have their own number."""
    for words, number in (("AWS Error ACCESS_DENIED during x", errno.EACCES), ("x", errno.EIO)):

        def refuse(*_: Any, words: str = words) -> None:
            raise OSError(words)

        broken = SimpleNamespace(get_file_info=refuse)
        opened = ArrowFiles("own:///a", broken)
        with pytest.raises(OSError) as raised:
            opened.status("own:///a/b")
        assert (number, "own:///a/b") == (raised.value.errno, raised.value.filename)
