# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify` of a store of RocketMQ: what the store offers to the model's laws.

Not offered: how many slots an index file has (RMQDISK-2), its name (RMQDISK-3), rights and change
meanwhile (DISK-1, -2), and sizes (DISK-7).
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.inventory.stores import find_places
from segproof.reading.store_paths import PlaceKind
from segproof.rocketmq.geometry import find_geometries
from segproof.verification import verify
from segproof_harness.laws.judge import ABSENT, LIMIT_BYTES, Judge, disagreements_of
from segproof_harness.laws.judged_directory import contents_of
from segproof_model.laws.rocketmq.broker.store_views import StoreFiles
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes
from segproof_model.laws.rocketmq.format.index_file_on_disk import length_fits, offsets_never_fall


class StoreJudge(Judge):
    """What the model says of one store. Names are relative: `index/2026...`."""

    def __init__(self, files: Mapping[str, bytes], hash_slot_num: int) -> None:
        self.store = StoreFiles(files, hash_slot_num)
        lost = {one.image for one in self.store.filled if not _can_be_followed(one)}
        kept = {
            name: b"" if name.startswith("index/") and image in lost else image
            for name, image in files.items()
        }
        followed = StoreFiles(kept, hash_slot_num) if lost else self.store
        entire = ABSENT if lost else self.store
        super().__init__(
            [{"store": self.store, "followed": followed, "entire": entire}],
            [
                {"raw_index_file": one, "index_file": one if length_fits(one) else ABSENT}
                for one in self.store.index
            ]
            or [{"raw_index_file": ABSENT, "index_file": ABSENT}],
        )


def _can_be_followed(file: IndexBytes) -> bool:
    """Return whether neither length nor offsets of an index file with entries are wrong."""
    return len(file.image) < 40 or (length_fits(file) and offsets_never_fall(file))


def stores_below(path: str | os.PathLike[str]) -> list[Path]:
    """Return the stores at or below `path`."""
    places = find_places(os.fspath(path), REAL_FILES)
    return [Path(place.path) for place in places if place.kind is PlaceKind.STORE]


def store_disagreements(store: Path) -> Iterator[Finding]:
    """Yield a finding for each law on which `verify` and the model part.

    Raises: OSError; ValueError for a store above LIMIT_BYTES, or one whose index files do not tell
    how many slots they have, all the same number.
    """
    paths = [path for path in store.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in paths)
    if size > LIMIT_BYTES:
        raise ValueError(f"{store}: {size} bytes are more than the model is given, {LIMIT_BYTES}")
    files = {path.relative_to(store).as_posix(): contents_of(path) for path in paths}
    folders = [path for path in store.rglob("*") if path.is_dir() and not any(path.iterdir())]
    files |= {f"{path.relative_to(store).as_posix()}/": b"" for path in folders}
    judge = StoreJudge(files, _slots_of(store, files))
    yield from disagreements_of(judge, list(verify(store)), store)


def _slots_of(store: Path, files: Mapping[str, bytes]) -> int:
    names = [name.removeprefix("index/") for name in files if name.startswith("index/")]
    answers = find_geometries(os.fspath(store / "index"), names)
    told = {one.geometry.hash_slot_num for one in answers.values() if one.geometry is not None}
    if len(told) > 1:
        raise ValueError(f"{store}: its index files have different numbers of slots")
    return told.pop() if told else 1
