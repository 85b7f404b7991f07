# SPDX-License-Identifier: Apache-2.0
"""Borders planted wrong in the checks of `verify`: the fast tests of the area must see each.

`python -m segproof_tests.planted_borders [WORD ...]` plants them one after the other, each in a
process of its own, and runs the tables of borders, or the tests, of its area. It prints who was
caught; words choose modules. Exit code 1 if one got away.

A module is changed while it is imported: no file is written.
"""

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

TESTS = Path(__file__).resolve().parents[2]
COUNTS = "unit/verification/test_counted_again.py"
FORMATS = "unit/cli/test_formats_agree.py"
NODE = "unit/verification/test_node_files.py"
CUT = "test_what_kafka_takes_for_a_cut_batch"
CAUGHT, GOT_AWAY, NOT_PLANTED = 0, 1, 2


@dataclass(frozen=True)
class Planted:
    """One wrong border."""

    module: str
    """Below `segproof`, or `segproof_harness` with its whole name."""
    right: str
    """A text that the module has once."""
    wrong: str
    tables: tuple[str, ...] = ()
    """Modules of `segproof_harness.laws.borders` that must see it."""
    tests: tuple[str, ...] = ()
    """Tests that must see it, where the tables of borders are not about it."""

    @property
    def name(self) -> str:
        """The whole name of the module."""
        is_whole = self.module.startswith("segproof_harness")
        return self.module if is_whole else f"segproof.{self.module}"


def _in(module: str, tables: Sequence[str], *changes: tuple[str, str]) -> list[Planted]:
    return [Planted(module, right, wrong, tuple(tables)) for right, wrong in changes]


PLANTED = [
    *_in(
        "verifying.index_file_checks", ("offset_index", "time_index", "transaction_index"),
        ("if 0 < self.size - whole < size:", "if 1 < self.size - whole < size:"),
        ("follows & (offsets <= shifted(offsets, 0))", "follows & (offsets < shifted(offsets, 0))"),
        ("(positions <= shifted(positions, 0))", "(positions < shifted(positions, 0))"),
        ("(timestamps <= shifted(timestamps, 0))", "(timestamps < shifted(timestamps, 0))"),
        ("(offsets < shifted(offsets, 0))", "(offsets <= shifted(offsets, 0))"),
        ("is_new & (timestamps < 0)", "is_new & (timestamps <= 0)"),
        ("(begin > last) | (begin < 0)", "(begin >= last) | (begin < 0)"),
        ("(stable > last + 1)", "(stable > last)"),
    ),
    *_in(
        "verifying.index_log_checks", ("offset_index", "time_index"),
        ("if stretch <= allowed:", "if stretch < allowed:"),
        (
            "block.before[rows[judged]] >= offsets[judged]",
            "block.before[rows[judged]] > offsets[judged]",
        ),
        ("if timed > TIMED_ENTRIES:", "if timed >= TIMED_ENTRIES:"),
        ("LOG_APPEND_TIME = 8", "LOG_APPEND_TIME = 16"),
    ),
    *_in(
        "verifying.batch_checks", ("record_batch", "record_file", "log_segment", "partition_log"),
        ('np.where(table["magic"] == 2, 0x7F, 0x0F)', 'np.where(table["magic"] == 2, 0xFF, 0x0F)'),
        ("good & (codec > 4)", "good & (codec > 5)"),
        ("(count * MIN_RECORD_BYTES > room)", "(count * MIN_RECORD_BYTES >= room)"),
        ("(count > delta + 1)", "(count > delta + 2)"),
        ('(table["last_offset"] >= following)', '(table["last_offset"] > following)'),
        ("(last > INT32_MAX)", "(last >= INT32_MAX)"),
    ),
    *_in(
        "verifying.log_blocks", ("partition_log",),
        ("(self.first > self.before + 1)", "(self.first > self.before + 2)"),
    ),
    *_in(
        "verifying.producer_checks", ("producers",),
        ("(last - base) & SEQUENCE_MAX < 1 << 30", "(last - base) & SEQUENCE_MAX <= 1 << 30"),
    ),
    *_in(
        "verifying.epoch_checks", ("producers",), ("epochs < before,", "epochs <= before,")
    ),
    *_in(
        "verifying.transaction_checks", ("producers", "transaction_index"),
        ("elif age < HANGS_MS:", "elif age <= HANGS_MS:"),
        ("or claimed <= before:", "or claimed < before:"),
    ),
    *_in(
        "verifying.lost_offsets", ("partition_log",),
        ('block["position"] >= self', 'block["position"] > self'),
        ("(distances > log.reach)", "(distances >= log.reach)"),
    ),
    *_in(
        "verifying.truncated_entries", ("offset_index",),
        ("0 <= largest <= self._log.max", "0 <= largest < self._log.max"),
        ("(at >= log_end)", "(at > log_end)"),
        ("beside.places * 2 < index", "beside.places * 2 <= index"),
    ),
    *_in("verifying.time_checks", ("record_batch",), ("times > LAST_MS)", "times >= LAST_MS)")),
    *_in(
        "verifying.metadata_snapshots", ("node_files",),
        ("known.offset >= start}", "known.offset > start}"),
    ),
    *(
        Planted("verifying.metadata_snapshots", right, wrong, tests=(f"{NODE}::{CUT}",))
        for right, wrong in (
            ("signed=True) >= 14", "signed=True) > 14"), ("len(head) < 12", "len(head) <= 12"),
            ("head[16] <= 2)", "head[16] < 2)"),
        )
    ),
    *_in(
        "verifying.sibling_files", ("log_directories",),
        (
            "known.state or known.topic == METADATA_TOPIC or not missing",
            "known.topic == METADATA_TOPIC or not missing",
        ),
    ),
    *_in("verifying.small_files", ("small_files",), ("if last >= offset:", "if last > offset:")),
    *_in(
        "verifying.rocketmq.index_file_checks", ("index_file",),
        ("(slots < 0) | (slots >= count)", "(slots < 0) | (slots > count)"),
        ("is_late = differences > max", "is_late = differences >= max"),
    ),
    *_in(
        "verifying.rocketmq.queue_walk", ("store",),
        ('"RMQDISK-36", offsets <= before,', '"RMQDISK-36", offsets < before,'),
    ),
    *_in(
        "verifying.rocketmq.key_checks", ("store",),
        ("(rows.number > 1)", "(rows.number > 2)"),
    ),
    *_in(
        "verifying.rocketmq.store_checks", ("store",),
        ("if ends and stored > max(ends):", "if ends and stored >= max(ends):"),
    ),
    *_in(
        "reading.store_times", ("store",),
        ("CLOCK_MS: Final = 3_600_000", "CLOCK_MS: Final = 3_600_001"),
    ),
    Planted(
        "verifying.loss_count", "start = max(start, self._counted_to)", "start = max(start, 0)",
        tests=(f"{COUNTS}::test_a_summary_is_counted_again",),
    ),
    Planted(
        "verifying.reporting", "if count > FINDINGS_PER_LAW:", "if count >= FINDINGS_PER_LAW:",
        tests=(f"{COUNTS}::test_places_above_a_hundred_are_counted",),
    ),
    Planted(
        "segproof_harness.reports.sarif", '"" if finding.position is None else',
        '"" if not finding.position else', tests=(f"{FORMATS}::test_sarif_tells_each_finding",),
    ),
    Planted(
        "segproof_harness.reports.sarif", "len(self._summaries) < SUMMARIES_MAX",
        "len(self._summaries) <= SUMMARIES_MAX",
        tests=(f"{FORMATS}::test_sarif_keeps_so_many_summaries",),
    ),
    Planted(
        "segproof_harness.reports.causes", "elif finding.position is not None:",
        "elif finding.position:", tests=(f"{FORMATS}::test_the_page_tells_each_file",),
    ),
]  # fmt: skip
"""Relations, one attribute bit, the end of the log, byte 0, and what is left out of a count."""


class _Planter(MetaPathFinder, Loader):
    """Gives the module with its wrong border to whoever imports it."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        spec = importlib.util.find_spec(planted.name)
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        source = spec.loader.get_source(planted.name) or ""
        if source.count(planted.right) != 1:
            raise LookupError(f"{planted.name} has not once: {planted.right}")
        if planted.name in sys.modules:
            raise LookupError(f"{planted.name} was imported before it was changed")
        self._origin = spec.origin
        self._source = source.replace(planted.right, planted.wrong)

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Return a spec for the module alone."""
        if fullname != self._planted.name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self._origin)

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self._source, self._origin or "", "exec"), module.__dict__)


def _sees(planted: Planted) -> bool:
    """Return whether the tables or tests of its area fail."""
    if planted.tests:
        import pytest

        options = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", "-m", "not slow"]
        return bool(pytest.main([*options, *(str(TESTS / one) for one in planted.tests)]))
    from segproof_tests.borders import check_border

    for table in planted.tables:
        borders = importlib.import_module(f"segproof_harness.laws.borders.{table}").BORDERS
        for border in borders:
            with tempfile.TemporaryDirectory(prefix="segproof-") as folder:
                try:
                    check_border(border, Path(folder))
                except Exception:  # also one that `verify` raises, which it never should
                    return True
    return False


def plant(planted: Planted) -> int:
    """Plant a border in a process of its own; return CAUGHT, GOT_AWAY or NOT_PLANTED."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    answer = NOT_PLANTED
    try:
        sys.meta_path.insert(0, _Planter(planted))
        importlib.import_module(planted.name)  # before pytest, which rewrites our package itself
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        answer = CAUGHT if _sees(planted) else GOT_AWAY
    finally:
        os._exit(answer)


def main(words: Sequence[str]) -> int:
    """Plant all whose module has one of the words; return the number that was not caught."""
    # The tables are made once; what checks them is imported by each process itself.
    for module in (
        "pytest",
        "segproof_harness.laws.every_law",
        "segproof_harness.laws.borders.every_border",
    ):
        importlib.import_module(module)
    chosen = [one for one in PLANTED if not words or any(word in one.module for word in words)]
    missed = 0
    for planted in chosen:
        answer = plant(planted)
        missed += answer != CAUGHT
        told = {CAUGHT: "caught", GOT_AWAY: "GOT AWAY"}.get(answer, "NOT PLANTED")
        print(f"{told}: {planted.module}: {planted.right} -> {planted.wrong}")
    print(f"{len(chosen) - missed} of {len(chosen)} caught")
    return missed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
