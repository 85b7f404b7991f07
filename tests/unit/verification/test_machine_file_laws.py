# SPDX-License-Identifier: Apache-2.0
"""The laws of files and names on what the implementation writes and reads.

The machines judge states and steps; a law of the scope `file` or `pure` is judged here, on drawn
entries, and on drawn damage where the implementation itself has an opinion.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.errors import SegproofError
from segproof.kafka import AbortedTxn, OffsetIndex, TimeIndex, TransactionIndex
from segproof.lookup import segment_file_name
from segproof.reading.file_names import SEGMENT_SUFFIXES, NameKind, read_file_name
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles
from segproof_harness.laws.every_law import LAWS
from segproof_model.kafka.format.offset_index import OffsetIndex as ModelOffsetIndex
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.register import Transition, broken_step_laws
from segproof_model.releases import NEWEST_KAFKA, release_named
from segproof_tests.partition_files import in_memory

PATH = "/subject/file"
BASE = 100
distances = st.integers(-2, 40) | st.sampled_from((2**31 - 1, 2**31))
timestamps = st.integers(-2, 40)
appends = st.lists(st.tuples(distances, timestamps, st.booleans()), max_size=12)


def files_in_memory() -> MemoryFiles:
    """Return files with one empty directory."""
    files = MemoryFiles()
    files.make_directory("/subject")
    return files


def image(files: MemoryFiles) -> bytes:
    """Return the bytes of the file, none if there is no file."""
    return files.images("/subject").get("file", b"")


def obeys_the_laws(data: bytes, *law_ids: str) -> bool:
    """Return whether the bytes of an index obey some laws."""
    return all(LAWS[law_id].predicate(data) for law_id in law_ids)


@pytest.mark.checks("OFFIDX-1", "OFFIDX-2")
@given(appends, st.booleans())
def test_offset_index_file(drawn: list[tuple[int, int, bool]], is_closed: bool) -> None:
    """Whatever was appended and refused, the file obeys the laws: closed, or as a crash left it."""
    files = files_in_memory()
    index = OffsetIndex(PATH, BASE, 80, create=True, files=files)
    for distance, position, _ in drawn:
        try:
            index.append(BASE + distance, position)
        except SegproofError:
            continue
    if is_closed:
        index.close()
    assert obeys_the_laws(image(files), "OFFIDX-1", "OFFIDX-2")


@pytest.mark.checks("TIMEIDX-1", "TIMEIDX-7")
@given(appends, st.booleans())
def test_time_index_file(drawn: list[tuple[int, int, bool]], is_closed: bool) -> None:
    """The same for the time index, its last slot included."""
    files = files_in_memory()
    index = TimeIndex(PATH, BASE, 80, create=True, files=files)
    for distance, timestamp, skip_full_check in drawn:
        try:
            index.maybe_append(timestamp, BASE + distance, skip_full_check)
        except SegproofError:
            continue
    if is_closed:
        index.close()
    assert obeys_the_laws(image(files), "TIMEIDX-1", "TIMEIDX-7")


@pytest.mark.checks("TXNIDX-1")
@given(st.lists(st.tuples(st.integers(-1, 1), timestamps, distances), max_size=12))
def test_transaction_index_file(drawn: list[tuple[int, int, int]]) -> None:
    """The same for the transaction index, whatever version it is given."""
    files = files_in_memory()
    index = TransactionIndex(BASE, PATH, create=True, files=files)
    for version, producer_id, distance in drawn:
        offset = BASE + distance
        try:
            index.append(AbortedTxn(version, producer_id, offset, offset, offset))
        except SegproofError:
            continue
    assert obeys_the_laws(image(files), "TXNIDX-1")


@pytest.mark.checks("OFFIDX-1", "OFFIDX-2")
@given(st.lists(st.sampled_from((0, 0, 0, 1, 2, 255)), max_size=48).map(bytes))
def test_sanity_check_is_stricter_than_the_file_laws(data: bytes) -> None:
    """A file that breaks a law of its bytes never passes the implementation's own check."""
    files = files_in_memory()
    handle = files.create_new(PATH)
    assert handle is not None
    handle.pwrite(data, 0)
    index = OffsetIndex(PATH, BASE, files=files)
    try:
        index.sanity_check()
    except SegproofError:
        return
    assert obeys_the_laws(data, "OFFIDX-1", "OFFIDX-2")


@pytest.mark.checks("OFFIDX-12")
@given(
    st.lists(st.integers(0, 60), max_size=10, unique=True).map(sorted),
    st.lists(st.integers(-3, 65), min_size=2, max_size=8),
)
def test_lookup_is_monotone(keys: list[int], targets: list[int]) -> None:
    """Model and implementation: a greater target never finds a smaller offset."""
    index = OffsetIndex(PATH, BASE, 800, create=True, files=files_in_memory())
    model = ModelOffsetIndex(Files(), "file", BASE, 800)
    for place, key in enumerate(keys):
        index.append(BASE + key, place)
        model.append(BASE + key, place)
    wanted = [BASE + target for target in targets]
    law = LAWS["OFFIDX-12"].predicate
    assert law(wanted, [index.lookup(target).offset for target in wanted])
    assert law(wanted, index.lookup_many(wanted)[0].tolist())
    assert law(wanted, [model.lookup(target).offset for target in wanted])


@pytest.mark.checks("FILE-1")
@given(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-1000, 1000), st.sampled_from(SEGMENT_SUFFIXES)
)
def test_names_of_segment_files(base_offset: int, suffix: str) -> None:
    """A name is the padded base offset, and is read back as a file of that segment."""
    name = segment_file_name(base_offset, suffix)
    assert LAWS["FILE-1"].predicate(base_offset, suffix, name)
    assert (NameKind.SEGMENT, base_offset, suffix) == tuple(read_file_name(name))


@pytest.mark.checks("FILE-1", "FILE-2")
@given(
    st.text("0123456789+-a. ", max_size=24) | st.integers(-(2**64), 2**64).map(str),
    st.sampled_from(SEGMENT_SUFFIXES),
)
def test_offsets_are_read_from_names(head: str, suffix: str) -> None:
    """Any name of a segment file: its offset is before the first dot, or it has none."""
    name = head + suffix
    read = read_file_name(name)
    no_offset = Raised(ErrorKind.INVALID_ARGUMENT)
    parsed = no_offset if read.kind is NameKind.NO_OFFSET else read.base_offset
    assert LAWS["FILE-2"].predicate(name, parsed)
    if read.kind in (NameKind.SEGMENT, NameKind.MISNAMED):
        is_right = LAWS["FILE-1"].predicate(read.base_offset, suffix, name)
        assert is_right == (read.kind is NameKind.SEGMENT)


@pytest.mark.checks("SCAN-16")
@given(
    st.sampled_from(
        [NEWEST_KAFKA, *map(release_named, ("kafka-4.0.2", "kafka-2.0.1", "segproof"))]
    ),
    st.lists(st.integers(-1, 12), min_size=4, max_size=4),
)
def test_slices_of_slices(release: Release, drawn: list[int]) -> None:
    """The model's releases: a slice of a slice lies inside, or is refused."""
    records = release.kind(RecordFile)(Files({"log": bytes(9)}), "log", file_already_exists=True)
    outer = outcome_of(records.slice, *drawn[:2])
    if not isinstance(outer, Raised):
        arguments = dict(zip(("position", "size"), drawn[2:], strict=True))
        inner = outcome_of(outer.slice, **arguments)
        step = Transition(type(outer), outer, "slice", arguments, outer, inner)
        assert "SCAN-16" not in broken_step_laws(step)


PLAIN_NAMES = [segment_file_name(base, suffix) for base in (0, 10) for suffix in SEGMENT_SUFFIXES]
OTHER_NAMES = [
    "notes.txt",
    "leader-epoch-checkpoint",
    "partition.metadata",
    segment_file_name(10, ".snapshot"),
    segment_file_name(5, ".log.deleted"),
    segment_file_name(5, ".index.swap"),
]
NAME_LAWS = ("DISK-3", "DISK-4", "DISK-5", "DISK-20", "LOAD-1")


@pytest.mark.checks(*NAME_LAWS)
@given(st.sets(st.sampled_from(PLAIN_NAMES + OTHER_NAMES)))
def test_names_in_a_partition_directory(names: set[str]) -> None:
    """Of any empty files: verify reports exactly the laws of names that the directory breaks."""
    files = in_memory(dict.fromkeys(names, b""), "/data/t-0")
    broken = {law for law in NAME_LAWS if not LAWS[law].predicate(names)}
    found = {finding.law for finding in verify("/data/t-0", laws=NAME_LAWS, files=files)}
    assert found == ({"DISK-20"} if names <= {"notes.txt"} else broken)


@pytest.mark.checks("DISK-71")
@given(
    st.sets(st.sampled_from(PLAIN_NAMES), max_size=2),
    st.sets(st.sampled_from([*OTHER_NAMES, segment_file_name(5, ".log.swap")])),
)
def test_a_folder_with_a_log_or_without(plain: set[str], others: set[str]) -> None:
    """Of any empty files: verify tells that there is no log exactly where the model does."""
    names = plain | others
    files = in_memory(dict.fromkeys(names, b"") | {f"../u-0/{PLAIN_NAMES[0]}": b""}, "/data/t-0")
    is_broken = names != {"notes.txt"} and not LAWS["DISK-71"].predicate(names)
    found = {one.path for one in verify("/data", laws=["DISK-71"], files=files)}
    assert ("/data/t-0" in found) == is_broken
