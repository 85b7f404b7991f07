# SPDX-License-Identifier: Apache-2.0
"""What a crash leaves, for small histories whose images are listed by hand."""

import errno
from collections.abc import Callable
from contextlib import closing

import pytest

from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.machine.contents import EMPTY, PAGE_BYTES, Content
from segproof_harness.machine.crash_images import Image, crash_images, has_names_in_order
from segproof_harness.machine.fault_model import MODES, mode_named
from segproof_harness.machine.simulated_files import SimulatedFiles, crashes_in, mounted

SECTOR = 4
OLD, NEW = b"aaaabbbb", b"AAAABBBB"
Work = Callable[[SimulatedFiles], None]
Left = list[dict[str, bytes]]


def prepared(data: bytes = OLD, capacity_bytes: int = 1 << 16) -> SimulatedFiles:
    """Return files with one durable file `/d/f`."""
    files = SimulatedFiles(capacity_bytes)
    write_file(files, "/d/f", data)
    files.settle()
    return files


def left_by(files: SimulatedFiles, mode: str, bound: int = 1000) -> Left:
    """Return the different images of a crash behind all that was done."""
    files.look()
    cut = len(files.journal)
    found = crash_images(files.journal, cut, mode_named(mode), bound=bound, sector_bytes=SECTOR)
    return [image.data() for image in found]


def check_left(files: SimulatedFiles, mode: str, *expected: dict[str, bytes]) -> None:
    """See that exactly these images are left, in any order."""
    found = left_by(files, mode)
    assert sorted(map(sorted_items, found)) == sorted(map(sorted_items, expected))


def sorted_items(image: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """Return what an image holds, to compare by."""
    return sorted(image.items())


def write(files: SimulatedFiles, data: bytes, position: int = 0, *, syncs: bool = False) -> None:
    """Write into `/d/f`."""
    with closing(files.open("/d/f", writable=True)) as file:
        file.pwrite(data, position)
        if syncs:
            file.sync()


@pytest.mark.parametrize("mode", ["ordered", "strict"])
def test_each_sector_has_any_of_its_versions(mode: str) -> None:
    """Old and new sectors are mixed, until a sync."""
    files = prepared()
    write(files, NEW)
    mixed = [{"/d/f": one} for one in (NEW, OLD, b"AAAAbbbb", b"aaaaBBBB")]
    check_left(files, mode, *mixed)
    write(files, b"", syncs=True)
    check_left(files, mode, {"/d/f": NEW})


def test_a_killed_process_leaves_all_that_it_did() -> None:
    """Bytes and names stay, synced or not."""
    files = prepared()
    write(files, NEW)
    files.rename("/d/f", "/d/g")
    check_left(files, "killed", {"/d/g": NEW})


@pytest.mark.parametrize("mode", ["ordered", "strict"])
def test_a_size_comes_before_its_bytes_or_after_them(mode: str) -> None:
    """A longer file holds zeros, or what was written; or it is not longer yet."""
    files = prepared(b"aaaa")
    write(files, b"bbbb", 4)
    check_left(files, mode, *({"/d/f": one} for one in (b"aaaa", b"aaaa\0\0\0\0", b"aaaabbbb")))


def test_stores_through_a_mapping_are_bytes_until_they_are_flushed() -> None:
    """They are recorded at the next call, and a flush makes them durable."""
    files = prepared()
    with closing(files.open("/d/f", writable=True)) as file:
        mapping = file.map(8)
        mapping.view()[4:8] = b"BBBB"
        check_left(files, "ordered", {"/d/f": b"aaaaBBBB"}, {"/d/f": OLD})
        mapping.flush()
        check_left(files, "ordered", {"/d/f": b"aaaaBBBB"})
    assert [one.call for one in files.journal.effects] == ["store", "flush"]


def test_names_in_order_and_in_none() -> None:
    """`ordered` keeps the first changes; `strict` any of them, and a rename is done whole."""
    files = prepared()
    files.rename("/d/f", "/d/g")
    write_file(files, "/d/h", b"")
    expected = [{"/d/f": OLD}, {"/d/g": OLD}, {"/d/g": OLD, "/d/h": b""}]
    check_left(files, "ordered", *expected)
    check_left(files, "strict", *expected, {"/d/f": OLD, "/d/h": b""})
    files.sync_directory("/d")
    check_left(files, "strict", expected[-1])


def test_a_sync_of_a_file_makes_older_names_durable_in_order_only() -> None:
    """ext4 and XFS commit their journal with it; POSIX needs the folder synced too."""
    files = prepared()
    with closing(files.open("/d/g", writable=True, create=True)) as file:
        file.pwrite(b"gggg", 0)
        file.sync()
    both = {"/d/f": OLD, "/d/g": b"gggg"}
    check_left(files, "ordered", both)
    check_left(files, "strict", both, {"/d/f": OLD})
    assert files.durable() == {"/d/f": OLD}


def test_what_lies_in_a_folder_goes_with_it() -> None:
    """A synced folder is lost as long as its own name is not durable."""
    files = prepared()
    files.make_directory("/d/e")
    write_file(files, "/d/e/g", b"gggg")
    with closing(files.open("/d/e/g")) as file:
        file.sync()
    files.sync_directory("/d/e")
    old = {"/d/f": OLD}
    check_left(files, "strict", old, old | {"/d/e/g": b"gggg"})
    files.sync_directory("/d")
    check_left(files, "strict", old | {"/d/e/g": b"gggg"})


def test_a_cut_is_metadata() -> None:
    """In order it comes with the names before it; where it is lost, the old end is back."""
    files = prepared()
    with closing(files.open("/d/f", writable=True)) as file:
        file.truncate(4)
    # ext4 writes the rest of the last page, which is zero now, before its journal.
    zeros = {"/d/f": b"aaaa\0\0\0\0"}
    check_left(files, "ordered", {"/d/f": b"aaaa"}, {"/d/f": OLD}, zeros)
    with closing(files.open("/d/f", writable=True)) as file:
        file.pwrite(b"cc", 4)
    found = left_by(files, "ordered")
    assert {"/d/f": b"aaaacc"} in found
    assert {"/d/f": b"aaaacc\0\0"} in found, "bytes behind a cut that is not durable"
    assert {"/d/f": b"aaaa\0\0"} in found, "the size before its bytes"
    assert {"/d/f": OLD} in found
    assert {"/d/f": b"aaaabb"} not in found, "a durable cut leaves no old bytes behind it"


@pytest.mark.parametrize("size", [0, PAGE_BYTES])
def test_a_cut_at_a_page_that_is_not_durable_leaves_the_old_bytes(size: int) -> None:
    """In order nothing but the cut is lost: the pages behind it are not written."""
    old = b"a" * 3 * PAGE_BYTES
    files = prepared(old)
    with closing(files.open("/d/f", writable=True)) as file:
        file.truncate(size)
    check_left(files, "ordered", {"/d/f": old[:size]}, {"/d/f": old})


def test_names_in_order_are_those_of_one_moment() -> None:
    """It is not older than the last sync of a folder."""
    files = prepared()
    write_file(files, "/d/g", b"")
    files.sync_directory("/d")
    write_file(files, "/d/h", b"")
    files.remove("/d/g")
    end, empty = len(files.journal), EMPTY
    for names, is_in_order in (("fg", True), ("fgh", True), ("fh", True), ("f", False)):
        image = Image({f"/d/{name}": empty for name in names}, frozenset({"/", "/d"}))
        assert has_names_in_order(image, files.journal, end) == is_in_order
        assert not has_names_in_order(image._replace(folders=frozenset()), files.journal, end)


def test_a_preallocated_file_costs_what_was_written() -> None:
    """Versions of 10 MiB of zeros share their pages."""
    files = prepared(b"", 1 << 24)
    with closing(files.open("/d/f", writable=True)) as file:
        file.truncate(10 << 20)
        for number in range(100):
            file.pwrite(b"entry", number * 5)
    versions = next(iter(files.journal.versions.values()))
    assert len(versions) == 102
    assert sum(len(data) for one in versions for data in one.content.pages.values()) < 30_000
    assert left_by(files, "killed") == [{"/d/f": (b"entry" * 100).ljust(10 << 20, b"\0")}]


def test_a_sync_that_fails_loses_its_pages() -> None:
    """A later sync does not write them, until they are written again."""
    files = prepared()
    files.fail(2, code=errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        write(files, NEW, syncs=True)
    assert [one.call for one in files.failed] == ["sync"]
    write(files, b"", syncs=True)
    mixed = [{"/d/f": one} for one in (NEW, OLD, b"AAAAbbbb", b"aaaaBBBB")]
    check_left(files, "ordered", *mixed)
    assert files.durable() == {"/d/f": OLD}
    write(files, b"CCCC", syncs=True)
    check_left(files, "ordered", {"/d/f": b"CCCCBBBB"})


def test_a_write_that_fails_has_written_half() -> None:
    """So the caller has to cut what it did not acknowledge."""
    files = prepared()
    files.fail(1)
    with pytest.raises(OSError, match="Input/output"):
        write(files, NEW)
    check_left(files, "killed", {"/d/f": b"AAAAbbbb"})
    write(files, NEW)
    check_left(files, "killed", {"/d/f": NEW})


def test_calls_that_fail_from_then_on() -> None:
    """Only changes count; reading goes on."""
    files = prepared()
    files.fail(1, for_ever=True)
    assert files.images("/d") == {"f": OLD}
    files.rename("/d/f", "/d/g")
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            files.rename("/d/g", "/d/h")
    files.fail(-1)
    files.rename("/d/g", "/d/h")
    check_left(files, "killed", {"/d/h": OLD})


@pytest.mark.parametrize("mode", ["ordered", "strict"])
def test_of_many_images_the_newest_and_the_oldest_come_first(mode: str) -> None:
    """Then each single choice apart, and drawn ones: the same for the same seed."""
    files = prepared(bytes(4 * 40))
    write(files, b"x" * 160)
    found = left_by(files, mode, 100)
    assert found == left_by(files, mode, 100)
    assert {"/d/f": bytes(160)} in found
    assert {"/d/f": b"x" * 160} == found[0]
    singles = [one for one in found if one["/d/f"].count(b"x") in (SECTOR, 160 - SECTOR)]
    assert 90 <= len(found) <= 102
    assert len(singles) > 60
    assert len(left_by(files, mode, 8)) <= 10


def test_crashes_in_an_operation() -> None:
    """There is a crash before its first effect, and behind each."""
    files = prepared()
    write(files, b"X")
    found = crashes_in(files, lambda: write(files, b"Y", 1), [mode_named("killed")])
    assert found == [{"/d/f": b"X" + OLD[1:]}, {"/d/f": b"XY" + OLD[2:]}]
    with pytest.raises(ValueError, match="no mode lazy: one of killed, ordered, strict"):
        mode_named("lazy")


def test_an_image_is_mounted() -> None:
    """Files that a crash left are files again, with their folders."""
    content = EMPTY.updated(b"z" * 5000, 5000)
    files = MemoryFiles()
    mounted(Image({"/a/b/c": content}, frozenset({"/", "/a", "/a/b", "/a/e"})), files)
    assert files.images("/", with_folders=True) == {"a/b/c": b"z" * 5000}
    assert files.list_directory("/a") == ["b", "e"]


def test_contents() -> None:
    """Cut, grown, changed in part: the bytes are those of a bytearray to which the same is done."""
    data = bytes(range(1, 251)) * 60
    content = EMPTY.updated(data, len(data))
    assert content.updated(data, len(data)) is content
    assert content.data() == data
    assert content.part(4000, 9000) == data[4000:9000]
    cut = content.resized(5000)
    assert (cut.data(), cut.resized(6000).data()) == (data[:5000], data[:5000] + bytes(1000))
    changed = content.with_parts({PAGE_BYTES: b"new", 3: bytes(4)})
    expected = bytearray(data)
    expected[PAGE_BYTES : PAGE_BYTES + 3], expected[3:7] = b"new", bytes(4)
    assert changed.data() == expected
    assert [*content.changed_pages(changed)] == [0, 1]
    assert content.updated(data[:5000], 5000) == cut
    assert hash(content.updated(data[:5000], 5000)) == hash(cut)
    assert EMPTY.updated(bytes(100), 100) == Content(100, {})


def test_modes_differ() -> None:
    """`killed` keeps all; `ordered` leaves nothing that `strict` does not."""
    files = prepared()
    write(files, NEW)
    files.rename("/d/f", "/d/g")
    left = {mode.name: {tuple(one.items()) for one in left_by(files, mode.name)} for mode in MODES}
    assert left["killed"] < left["ordered"] <= left["strict"]
