# SPDX-License-Identifier: Apache-2.0
"""A rebuild that ends at any change of a file: what it leaves, and that a second one completes."""

import errno
from functools import partial
from typing import TypeVar

import pytest

from segproof import rebuild
from segproof.reading.unfinished import MARKER
from segproof.rebuilding.partition_files import BESIDE
from segproof_harness.files.memory_files import write_file
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.machine.simulated_files import POWER_LOSS, SimulatedFiles, crashes_in
from segproof_tests.failing_files import EndingFiles, each_end

DIR, OUT, BACKUP = "/d/t-0", "/e/t-0", "/e/backup"
PARTITION = next(partition_of(each) for each in scenarios() if each.name == "compacted")
BASES = (0, 4104, 5235)
ROOM = 4096
"""Bytes of a new index: little, since files in memory are."""


Kind = TypeVar("Kind", EndingFiles, SimulatedFiles)


def damaged(files: Kind) -> Kind:
    """The last two segments of a real partition with every index broken."""
    files.make_directory("/e")
    left_out = f"{BASES[0]:020d}"
    kept = [path for path in PARTITION.iterdir() if not path.name.startswith(left_out)]
    images = {path.name: path.read_bytes() for path in kept}
    for base in BASES[1:]:
        for suffix in (".index", ".timeindex", ".txnindex"):
            images[f"{base:020d}{suffix}"] = bytes(range(1, 100))
    for name, data in images.items():
        write_file(files, f"{DIR}/{name}", data)
    return files


def rebuilt(
    files: EndingFiles | SimulatedFiles, in_place: bool, copy: bool = False
) -> dict[str, bytes]:
    """Rebuild, and return what lies in the place of the new files."""
    out = None if in_place else OUT
    rebuild(DIR, out, in_place=in_place, copy=copy, max_index_bytes=ROOM, files=files)
    return files.images(DIR if in_place else OUT)


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_an_end_at_any_change_leaves_each_file_whole(in_place: bool) -> None:
    """The old file or the new one stands under each name, and a second run completes the work."""
    complete = damaged(EndingFiles())
    old = complete.images(DIR)
    new = rebuilt(complete, in_place)
    ends = 0
    for files in each_end(lambda: damaged(EndingFiles()), partial(rebuilt, in_place=in_place)):
        ends += 1
        left = files.images(DIR)
        # A dry run failed at the files that are left: "a dry run changes no file".
        dry = rebuild(DIR, in_place=True, dry_run=True, max_index_bytes=ROOM, files=files)
        assert left == files.images(DIR)
        for each, data in left.items():
            assert each.endswith(BESIDE) or data in (old.get(each), new.get(each))
        if not in_place:
            assert old == left
            for each, data in files.images(OUT).items():
                assert each == MARKER or each.endswith(BESIDE) or data == new[each]
            if set(files.images(OUT)) != set(new) and files.status(OUT) is not None:
                assert not files.images(OUT) or MARKER in files.images(OUT)
            if files.images(OUT) == new:
                continue
        if in_place:
            assert dry == rebuild(DIR, in_place=True, max_index_bytes=ROOM, files=files)
        assert new == rebuilt(files, in_place)
    assert ends > 20


@pytest.mark.slow
@pytest.mark.parametrize("in_place", [False, True], ids=["out", "in-place"])
def test_a_device_that_is_full_keeps_the_old_files_and_nothing_else(in_place: bool) -> None:
    """Wherever the room ends: one error that says so, each old file or its new one, no leftover."""
    complete = damaged(EndingFiles())
    old = complete.images(DIR)
    new = rebuilt(complete, in_place)
    # Not the errors: each holds its files, whose reserved memory lets a later fork fail.
    ends: list[tuple[int | None, bool]] = []
    for changes in range(1000):
        files = damaged(EndingFiles())
        files.left, files.is_full = changes, True
        try:
            rebuilt(files, in_place)
        except OSError as error:
            ends.append((error.errno, bool(error.filename)))
        else:
            break
        left = files.images(DIR)
        assert set(old) <= set(left) <= {*old, *new}
        for each, data in left.items():
            assert data in (old.get(each), new.get(each))
        if not in_place:
            assert old == left
            # All is there and durable; only that the marker has gone may not be.
            assert files.status(OUT) is None or files.images(OUT) == new
    assert len(ends) > 20
    assert {(errno.ENOSPC, True)} == set(ends)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["out", "copy", "in_place"])
def test_a_loss_of_power_at_any_change_leaves_each_file_whole(how: str) -> None:
    """No name stands for a file whose bytes were not durable before it had that name."""
    files = damaged(SimulatedFiles())
    files.settle()
    in_place = how == "in_place"
    top = DIR if in_place else OUT
    old = files.images(top) if in_place else {}
    images = crashes_in(files, lambda: rebuilt(files, in_place, how == "copy"), POWER_LOSS)
    new = files.images(top)
    assert len(images) > 5
    for image in images:
        found = files_of(image, top)
        is_marked = MARKER in found
        assert set(old) <= set(found)
        assert is_marked or set(found) in (set(old), set(new))
        for name, data in found.items():
            assert is_marked or data in (old.get(name), new[name]), name
    assert new == files_of(files.durable(), top)


def with_backup(files: EndingFiles | SimulatedFiles) -> None:
    """Rebuild in place, and keep the old files."""
    rebuild(DIR, in_place=True, backup=BACKUP, max_index_bytes=ROOM, files=files)


def test_an_end_at_any_change_keeps_each_old_file_in_its_place_or_in_the_backup() -> None:
    """A copy that was cut off has another name; a second run keeps what is left, and completes."""
    complete = damaged(EndingFiles())
    old = complete.images(DIR)
    with_backup(complete)
    new, kept = complete.images(DIR), complete.images(BACKUP + DIR)
    assert {name: old[name] for name in old if old[name] != new[name]} == kept
    ends = 0
    for files in each_end(lambda: damaged(EndingFiles()), with_backup):
        ends += 1
        there, saved = files.images(DIR), files.images(BACKUP + DIR)
        for name, data in old.items():
            assert data == there[name] or (data, new[name]) == (saved[name], there[name])
        with_backup(files)
        assert (new, kept) == (files.images(DIR), files.images(BACKUP + DIR))
    assert ends > 20


@pytest.mark.slow
def test_a_loss_of_power_at_any_change_keeps_each_old_file() -> None:
    """The backup is durable before the first new file has its name."""
    files = damaged(SimulatedFiles())
    files.settle()
    old = files.images(DIR)
    images = crashes_in(files, lambda: with_backup(files), POWER_LOSS)
    for image in images:
        there, saved = files_of(image, DIR), files_of(image, BACKUP + DIR)
        for name, data in old.items():
            assert data in (there[name], saved.get(name))


def files_of(image: dict[str, bytes], folder: str) -> dict[str, bytes]:
    """Return the files of a folder by name, without what a rebuild makes beside them."""
    start = f"{folder}/"
    return {
        path.removeprefix(start): data
        for path, data in image.items()
        if path.startswith(start) and not path.endswith(BESIDE)
    }
