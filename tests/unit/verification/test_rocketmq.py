# SPDX-License-Identifier: Apache-2.0
"""Every corruption of a real store is reported with its law; no file is touched, nothing hangs."""

import random
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from segproof.findings import Severity
from segproof.rocketmq.geometry import find_geometry, infer_geometries
from segproof.rocketmq.index_table import Geometry
from segproof.verification import VERIFIED_LAWS, verify
from segproof_harness.cli import run
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_harness.laws.broken_files import damaged_copy
from segproof_harness.laws.broken_stores import STORE_EXAMPLES, entry
from segproof_harness.laws.file_damages import (
    Damage,
    Example,
    add,
    cut,
    int32,
    int64,
    overwrite,
    remove,
    together,
    write,
)
from segproof_tests.altered_files import altered
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import check_shown_again, state_of
from segproof_tests.store_files import INDEX, LOG, QUEUE, SMALL, copied_store

DATA = ROCKETMQ
NOTES = {f"RMQDISK-{number}" for number in (3, 14, 22, 34, 38, 41, 58)}
MAX = 2**31 - 1


MORE: dict[str, tuple[str, Damage]] = {
    "a header and nothing else": ("RMQDISK-1", cut(INDEX, 1344)),
    "an empty file": ("RMQDISK-1", cut(INDEX, 1384)),
    "a log file that is too short": ("RMQDISK-23", write(
        "commitlog/00000000000000016384", bytes(100))),
    "20 bytes more": ("RMQDISK-2", add(INDEX, bytes(4))),
    "a count of 2^31-1": ("RMQDISK-4", overwrite(INDEX, 36, int32(MAX))),
    "a count below 0": ("RMQDISK-4", overwrite(INDEX, 36, int32(-5))),
    "a count that is too small": ("RMQDISK-6", overwrite(INDEX, 36, int32(20))),
    "a slot below 0": ("RMQDISK-8", overwrite(INDEX, 44, int32(-1))),
    "a slot of 2^31-1": ("RMQDISK-8", overwrite(INDEX, 44, int32(MAX))),
    "a slot that equals the count": ("RMQDISK-8", overwrite(INDEX, 44, int32(27))),
    "a slot of another chain": ("RMQDISK-10", overwrite(INDEX, 44, int32(2))),
    "a cycle of two": ("RMQDISK-9", together(
        overwrite(INDEX, entry(3, 16), int32(5)), overwrite(INDEX, entry(5, 16), int32(3)))),
    "a previous index below 0": ("RMQDISK-9", overwrite(INDEX, entry(9, 16), int32(-3))),
    "a previous index of 2^31-1": ("RMQDISK-9", overwrite(INDEX, entry(9, 16), int32(MAX))),
    "a chain cut off": ("RMQDISK-11", overwrite(INDEX, entry(6, 16), int32(0))),
    "a hash below 0": ("RMQDISK-10", overwrite(INDEX, entry(9), int32(-9))),
    "a hash of the message before, less 2^31": (
        "RMQDISK-30", overwrite(INDEX, entry(4), int32(1829193424 - 2**31))),
    "an offset below 0": ("RMQDISK-15", overwrite(INDEX, entry(1, 4), int64(-1))),
    "the begin offset": ("RMQDISK-16", overwrite(INDEX, 16, int64(1))),
    "the end timestamp": ("RMQDISK-13", overwrite(INDEX, 8, int64(1795223795079))),
    "a difference that is too small": ("RMQDISK-32", overwrite(INDEX, entry(9, 12), int32(5))),
    "the last entry's difference": ("RMQDISK-13", overwrite(INDEX, entry(26, 12), int32(7))),
    "a negative time in the checkpoint": ("RMQDISK-20", overwrite("checkpoint", 8, int64(-1))),
    "a record of 2^31-1 bytes": ("RMQDISK-24", overwrite(LOG, 1628, int32(MAX))),
    "a record of negative size": ("RMQDISK-24", overwrite(LOG, 1628, int32(-4))),
    "a body of 2^31-1 bytes": ("RMQDISK-24", overwrite(LOG, 1628 + 84, int32(MAX))),
    "a record whose size is 1 more": ("RMQDISK-24", overwrite(LOG, 1628, int32(151))),
    "a log cut in a message": ("RMQDISK-24", cut(LOG, 16384 - 1700)),
    "a blank magic in the middle": ("RMQDISK-24", overwrite(LOG, 1632, int32(-875286124))),
    "a blank end in the middle": ("RMQDISK-24", overwrite(
        LOG, 746, int32(16384 - 746) + int32(-875286124))),
    "zeros in the middle of the log": ("RMQDISK-27", overwrite(LOG, 906, bytes(136))),
    "bytes in a file that was made ahead": ("RMQDISK-27", write(
        "commitlog/00000000000000016384", bytes(100) + b"x" + bytes(16283))),
    "a queue of odd length": ("RMQDISK-35", cut(QUEUE, 7)),
    "a unit behind the zeros": ("RMQDISK-35", overwrite(QUEUE, 19980, b"\1" * 20)),
    "the last unit is gone": ("RMQDISK-37", overwrite(QUEUE, 220, bytes(20))),
    "a unit of another size": ("RMQDISK-37", overwrite(QUEUE, 8, int32(7))),
    "a number among the index files": ("RMQDISK-38", write("index/123", b"")),
    "a log file at 2^63-1": ("RMQDISK-39", write("commitlog/09223372036854775807", b"x" * 99)),
    "a queue file beyond 63 bits": ("RMQDISK-39", write(f"{QUEUE[:-20]}{'9' * 20}", bytes(20))),
    "a log file with a sign": ("RMQDISK-39", write("commitlog/-0000000000000000001", bytes(99))),
    "a queue file 10 PB away": ("RMQDISK-35", write(
        f"{QUEUE[:-20]}00010000000000000000", b"x" * 20)),
    "a log file 10 PB away": ("RMQDISK-23", write("commitlog/00010000000000000000", b"x" * 99)),
    "the log's only file is gone": ("RMQDISK-23", remove(LOG)),
    "the queue's only file is gone": ("RMQDISK-37", remove(QUEUE)),
    "an entry 68 years behind the last": ("RMQDISK-14", overwrite(INDEX, entry(5, 12), int32(MAX))),
}  # fmt: skip


def check_reported(law: str, example: Example, folder: Path) -> None:
    """Hold what verify says of a damaged store."""
    store = damaged_copy(example, folder)
    before = state_of(store)
    findings = list(verify(store / example.below))
    assert before == state_of(store)
    named = [one for one in findings if one.law == law]
    assert named, [str(one) for one in findings]
    assert law in NOTES or any(one.is_defect for one in named)
    check_shown_again(named)


def test_every_law_has_an_example() -> None:
    """What verify reports of RocketMQ's files can be shown by a small damage."""
    assert {law for law in VERIFIED_LAWS if law.startswith("RMQ")} == set(STORE_EXAMPLES)


@pytest.mark.parametrize("law", STORE_EXAMPLES)
def test_broken_law_is_reported(law: str, tmp_path: Path) -> None:
    """The finding names the law, says what to do, and its command shows it again."""
    check_reported(law, STORE_EXAMPLES[law], tmp_path)


@pytest.mark.parametrize("name", MORE)
def test_corruption_is_reported(name: str, tmp_path: Path) -> None:
    """So do the findings of further corruptions."""
    law, damage = MORE[name]
    check_reported(law, Example(name, damage, SMALL, system="rocketmq"), tmp_path)


@pytest.mark.checks("RMQDISK-38")
@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("+7", Severity.WARNING),
        ("\u0967", Severity.WARNING),
        ("\U0001d7d0", Severity.NOTE),
        ("+-7", Severity.NOTE),
        (str(2**63), Severity.NOTE),
    ],
)
def test_a_name_that_java_does_not_parse_is_passed_over(
    name: str, severity: Severity, tmp_path: Path
) -> None:
    """Verify said that RocketMQ loads it: a digit above U+FFFF, two signs, more than 63 bits."""
    store = damaged_copy(
        Example(name, write(f"index/{name}", b""), SMALL, system="rocketmq"), tmp_path
    )
    assert [severity] == [one.severity for one in verify(store) if one.law == "RMQDISK-38"]


@pytest.mark.checks("RMQDISK-27")
@pytest.mark.parametrize("count", [1, 2])
def test_files_that_a_broker_made_before_it_needs_them(count: int, tmp_path: Path) -> None:
    """A running broker, and one that was killed, has a next file of the log: all zeros."""
    store = copied_store(tmp_path)
    before = list(verify(store, deep=True))
    for number in range(1, count + 1):
        (store / "commitlog" / f"{16384 * number:020d}").write_bytes(bytes(16384))
    assert before == list(verify(store, deep=True))


@pytest.mark.parametrize("name", [*MORE, *STORE_EXAMPLES])
def test_no_verb_ends_in_a_traceback(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """Whatever is damaged, each verb ends with 0, 1 or 2 in clear lines, and writes nothing."""
    example = STORE_EXAMPLES.get(name)
    if example is None:
        example = Example(name, MORE[name][1], SMALL, system="rocketmq")
    store = damaged_copy(example, tmp_path)
    before = state_of(store)
    asked = ["--key", "TopicTest#order-1", "--phy-offset", "1628"]
    for verb, *more in (["verify"], ["dump"], ["lookup", *asked]):
        assert run([verb, str(store), *more]) in (0, 1, 2)
        assert "internal error" not in capsys.readouterr().err
    assert before == state_of(store)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["index", "commitlog", "consumequeue", "checkpoint"])
def test_flipped_bits_and_garbage(kind: str, tmp_path: Path, capsys: Capsys) -> None:
    """Random damage ends in findings or none, never in an error, and no file changes."""
    draw = random.Random(kind)
    store = copied_store(tmp_path)
    names = [one.relative_to(store).as_posix() for one in store.rglob("*") if one.is_file()]
    path = store / next(name for name in names if name.startswith(kind))
    sound = path.read_bytes()
    for number in range(60):
        data = bytearray(sound[: draw.randrange(len(sound) + 1)] if number % 5 == 4 else sound)
        for _ in range(draw.choice((1, 1, 8, 200))):
            if data:
                data[draw.randrange(min(len(data), 2000))] = draw.choice((0, 1, 127, 128, 255))
        path.write_bytes(data)
        before = state_of(store)
        found = list(verify(store))
        assert before == state_of(store)
        assert all(one.law in VERIFIED_LAWS for one in found)
        for verb in (["dump", str(path)], ["lookup", str(store), "--key", "TopicTest#order-1"]):
            assert run(verb) in (0, 1, 2)
        assert "internal error" not in capsys.readouterr().err


def with_older_header(files: MemoryFiles, header: bytes) -> Any:
    """Return files of which the first look at a header shows an old one, as beside a writer."""

    def open_file(path: str, **options: Any) -> Any:
        file, waiting = files.open(path, **options), [header]

        def pread(size: int, position: int) -> bytes:
            is_header = (size, position) == (40, 0) and waiting
            return waiting.pop() if is_header else file.pread(size, position)

        return altered(file, pread=pread)

    return altered(files, open=open_file)


@pytest.mark.parametrize("count", [2, 5, 20, 26])
def test_a_broker_that_writes_breaks_nothing(count: int) -> None:
    """Entries behind the header that was read first are no defects; their slots are led back."""
    files = MemoryFiles(clock_ms=lambda: 0)
    image = (DATA / SMALL / "store" / INDEX).read_bytes()
    write_file(files, "/i/20261121011453849", image)
    slots = {struct.unpack_from(">i", image, entry(index))[0] % 16 for index in range(1, count)}
    live = with_older_header(files, image[:32] + int32(len(slots)) + int32(count))
    found = list(verify("/i/20261121011453849", files=live, hash_slots=16))
    assert [] == [str(one) for one in found]


def test_a_put_that_was_cut_off_is_told() -> None:
    """The newest entry and its slot are there, and the header does not count it: a crash."""
    files = MemoryFiles(clock_ms=lambda: 0)
    image = bytearray((DATA / SMALL / "store" / INDEX).read_bytes())
    image[36:40] = int32(26)
    write_file(files, "/i/20261121011453849", bytes(image))
    found = list(verify("/i/20261121011453849", files=files))
    assert {"RMQDISK-6", "RMQDISK-8"} <= {one.law for one in found}
    assert any("its put was cut off" in one.message for one in found)


def test_a_marker_is_explained(tmp_path: Path) -> None:
    """`abort` is a note that says what the next start does."""
    store = copied_store(tmp_path)
    (store / "abort").write_bytes(b"")
    (note,) = verify(store)
    assert (Severity.NOTE, "RMQDISK-22") == (note.severity, note.law)
    assert "deletes 1 of 1 index files" in note.message


@pytest.mark.parametrize(("later", "gone"), [(-1, 1), (0, 0)])
def test_what_a_marker_costs_is_counted(later: int, gone: int, tmp_path: Path) -> None:
    """An index file stays that ends with the time of the checkpoint."""
    store = copied_store(tmp_path)
    (store / "abort").touch()
    (index,) = (store / "index").iterdir()
    end = int.from_bytes(index.read_bytes()[8:16], "big") + later
    path = store / "checkpoint"
    path.write_bytes(path.read_bytes()[:16] + end.to_bytes(8, "big") + path.read_bytes()[24:])
    (note,) = verify(store, laws=["RMQDISK-22"])
    assert f"deletes {gone} of 1 index files" in note.message


@pytest.mark.parametrize("path", sorted(DATA.glob("*/store/index/*")), ids=lambda one: one.name)
def test_geometry_is_inferred(path: Path) -> None:
    """Header and chains of each real file leave one pair of numbers."""
    from segproof.files import REAL_FILES

    folder = path.parents[2].name
    wanted = {
        "small": Geometry(16, 64), "rolled": Geometry(32, 100),
        "collisions": Geometry(8, 2048), "u8msgs": Geometry(32, 300),
    }[folder.partition("-")[0]]  # fmt: skip
    file = REAL_FILES.open(str(path))
    try:
        assert (wanted,) == infer_geometries(file)
    finally:
        file.close()
    assert "inferred" == find_geometry(path).origin
    assert wanted == find_geometry(path, hash_slot_num=wanted.hash_slot_num).geometry
    assert find_geometry(path, hash_slot_num=wanted.hash_slot_num + 1).geometry is None


def test_geometry_of_an_empty_file_is_that_of_its_siblings(tmp_path: Path) -> None:
    """A file without entries is of the kind of the files beside it; alone it tells nothing."""
    source = next(DATA.glob("rolled-4.9.8/store/index/*"))
    shutil.copyfile(source, tmp_path / source.name)
    empty = tmp_path / "20991121011525806"
    empty.write_bytes(bytes(source.stat().st_size))
    assert ("siblings", Geometry(32, 100)) == (
        find_geometry(empty).origin,
        find_geometry(empty).geometry,
    )
    (tmp_path / source.name).unlink()
    assert (None, "unknown") == (find_geometry(empty).geometry, find_geometry(empty).origin)
    assert [] == list(verify(empty))


def test_given_slots_that_do_not_fit(capsys: Capsys) -> None:
    """--hash-slots is believed; a number that the length forbids is a finding of each verb."""
    path = str(DATA / SMALL / "store" / INDEX)
    assert 0 == run(["verify", path, "--hash-slots", "16"])
    assert 1 == run(["verify", path, "--hash-slots", "17"])
    assert "--hash-slots 17" in capsys.readouterr().out
    assert 1 == run(["dump", path, "--hash-slots", "17"])
    assert 2 == run(["verify", path, "--hash-slots", "0"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lookup", "STORE", "--offset", "4"], "--key, --keys or --phy-offset"),
        (["lookup", "STORE", "--key", "nothing"], "TOPIC#KEY"),
        (["lookup", "STORE", "--key", "T#k", "--profile", "kafka-4.3.1"], "rocketmq"),
        (["lookup", "KAFKA", "--key", "T#k"], "no store"),
        (["lookup", "KAFKA", "--offset", "4", "--profile", "rocketmq-5.5.1"], "kafka"),
        (["dump", "KAFKA", "--hash-slots", "4"], "RocketMQ"),
        (["dump", "KAFKA", "--profile", "rocketmq-5.5.1"], "kafka"),
        (["rebuild", "STORE", "--out", "x", "--copy"], "Kafka"),
        (["rebuild", "KAFKA", "--out", "x", "--hash-slots", "4"], "no store"),
    ],
)
def test_what_makes_no_sense_is_refused(words: list[str], said: str, capsys: Capsys) -> None:
    """Options of the other system end with 2 and a clear line."""
    paths = {
        "STORE": str(DATA / SMALL / "store"),
        "KAFKA": str(DATA.parent / "kafka" / "plain" / "plain-0"),
    }
    assert 2 == run([paths.get(word, word) for word in words])
    assert said in capsys.readouterr().err
