# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify` of a store of RocketMQ: the model's laws, one by one.

Not covered: names of index files (RMQDISK-3), rights and change meanwhile (DISK-1, -2), sizes
(DISK-7), and laws that only a note speaks of.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.rocketmq.geometry import find_geometries
from segproof.verification import VERIFIED_LAWS, verify
from segproof.verifying.rocketmq.store_paths import PlaceKind, find_places
from segproof_harness.laws.every_law import LAWS
from segproof_harness.laws.judged_directory import LIMIT_BYTES, broken_by, contents_of, disagreement
from segproof_model.laws.rocketmq.broker.store_views import StoreFiles
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes
from segproof_model.laws.rocketmq.format.index_file_on_disk import length_fits, offsets_never_fall

__all__ = ["NOT_JUDGED", "ONLY_NOTES", "StoreJudge", "store_disagreements", "stores_below"]

NOT_JUDGED = frozenset({"RMQDISK-2", "RMQDISK-3", "DISK-1", "DISK-2", "DISK-7"})
ONLY_NOTES = frozenset({"RMQDISK-14", "RMQDISK-22", "RMQDISK-34", "RMQDISK-38"})
OF_EVERY_ENTRY = frozenset({"RMQDISK-31", "RMQDISK-33"})
"""Laws that no entry is missing: not asked where an index file can't be followed."""
OF_ENTRIES = OF_EVERY_ENTRY | {
    "RMQDISK-28", "RMQDISK-29", "RMQDISK-30", "RMQDISK-32", "RMQDISK-34"
}  # fmt: skip
"""Laws of entries and the log: asked of the index files that can be followed."""


class StoreJudge:
    """What the model says of one store, law by law. Names are relative: `index/2026...`."""

    def __init__(self, files: Mapping[str, bytes], hash_slot_num: int) -> None:
        self.store = StoreFiles(files, hash_slot_num)
        lost = {one.image for one in self.store.filled if not _can_be_followed(one)}
        kept = {
            name: b"" if name.startswith("index/") and image in lost else image
            for name, image in files.items()
        }
        self._followed = StoreFiles(kept, hash_slot_num) if lost else self.store

    def breaks(self, law_id: str) -> bool:
        """Return whether the store breaks a law that can be judged."""
        store = self._followed if law_id in OF_ENTRIES else self.store
        inputs = [{"store": store}] if law_id not in OF_EVERY_ENTRY or store is self.store else []
        files = [one for one in self.store.index if law_id == "RMQDISK-1" or length_fits(one)]
        return broken_by(LAWS[law_id].predicate, [*inputs, *({"index_file": one} for one in files)])

    def broken(self) -> list[str]:
        """Return the laws that the store breaks, of those that make a defect."""
        of_rocketmq = {law for law in VERIFIED_LAWS if law.startswith("RMQ")}
        return [law for law in sorted(of_rocketmq - NOT_JUDGED - ONLY_NOTES) if self.breaks(law)]


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
    findings = list(verify(store))
    defects = {each.law for each in findings if each.is_defect}
    for law_id in sorted(defects - NOT_JUDGED):
        if not judge.breaks(law_id):
            yield disagreement(law_id, store, reported=True)
    if not defects:
        for law_id in judge.broken():
            yield disagreement(law_id, store, reported=False)


def _slots_of(store: Path, files: Mapping[str, bytes]) -> int:
    names = [name.removeprefix("index/") for name in files if name.startswith("index/")]
    answers = find_geometries(os.fspath(store / "index"), names)
    told = {one.geometry.hash_slot_num for one in answers.values() if one.geometry is not None}
    if len(told) > 1:
        raise ValueError(f"{store}: its index files have different numbers of slots")
    return told.pop() if told else 1
