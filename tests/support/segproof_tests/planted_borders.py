# SPDX-License-Identifier: Apache-2.0
"""Borders planted wrong in the checks of `verify`: the fast tests of the area must see each.

`python -m segproof_tests.planted_borders [WORD ...]` plants them one after the other, each in a
process of its own, and checks the borders of its law, or runs the tests of its area. It prints who
was caught; words choose modules. Exit code 1 if one got away.

A module is changed while it is imported: no file is written.
"""

import importlib
import importlib.util
import itertools
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
    law: str = ""
    """A border of this law must see it."""
    tests: tuple[str, ...] = ()
    """Tests that must see it, where the tables of borders are not about it."""

    @property
    def name(self) -> str:
        """The whole name of the module."""
        is_whole = self.module.startswith("segproof_harness")
        return self.module if is_whole else f"segproof.{self.module}"


def _in(module: str, *changes: tuple[str, str, str]) -> list[Planted]:
    return [Planted(module, right, wrong, law) for right, wrong, law in changes]


def _seen(file: str, test: str, module: str, right: str, wrong: str) -> Planted:
    """Return a border that a unit test must see."""
    return Planted(module, right, wrong, tests=(f"unit/{file}::{test}",))


PLANTED = [
    *_in(
        "verifying.index_file_checks",
        ("if 0 < self.size - whole < size:", "if 1 < self.size - whole < size:", "OFFIDX-1"),
        (
            "follows & (offsets <= shifted(offsets, 0))",
            "follows & (offsets < shifted(offsets, 0))", "OFFIDX-2",
        ),
        ("(positions <= shifted(positions, 0))", "(positions < shifted(positions, 0))", "DISK-8"),
        (
            "(timestamps <= shifted(timestamps, 0))", "(timestamps < shifted(timestamps, 0))",
            "TIMEIDX-7",
        ),
        ("(offsets < shifted(offsets, 0))", "(offsets <= shifted(offsets, 0))", "TIMEIDX-7"),
        ("is_new & (timestamps < 0)", "is_new & (timestamps <= 0)", "DISK-22"),
        (
            "bool((offsets < 0).any() or (timestamps", "bool((offsets <= 0).any() or (timestamps",
            "DISK-9",
        ),
        ("(begin > last) | (begin < 0)", "(begin >= last) | (begin < 0)", "DISK-21"),
        ("(stable > last + 1)", "(stable > last)", "DISK-21"),
    ),
    *_in(
        "verifying.index_log_checks",
        ("if stretch <= allowed:", "if stretch < allowed:", "DISK-24"),
        (
            "block.before[rows[judged]] >= offsets[judged]",
            "block.before[rows[judged]] > offsets[judged]", "SEG-7",
        ),
        ("if timed > TIMED_ENTRIES:", "if timed >= TIMED_ENTRIES:", "DISK-24"),
        ("LOG_APPEND_TIME = 8", "LOG_APPEND_TIME = 16", "DISK-9"),
        ("(times < self._least)", "(times <= self._least)", "DISK-69"),
        (
            "self._log.is_read and self._log.is_sound", "self._log.is_read or self._log.is_sound",
            "DISK-9",
        ),
    ),
    *_in(
        "verifying.batch_checks",
        (
            'np.where(table["magic"] == 2, 0x7F, 0x0F)',
            'np.where(table["magic"] == 2, 0xFF, 0x0F)',
            "DISK-15",
        ),
        ("good & (codec > 4)", "good & (codec > 5)", "BATCH-18"),
        ("(count * MIN_RECORD_BYTES > room)", "(count * MIN_RECORD_BYTES >= room)", "BATCH-16"),
        ("(count > delta + 1)", "(count > delta + 2)", "DISK-14"),
        ('(table["last_offset"] >= following)', '(table["last_offset"] > following)', "LOG-4"),
        ("(last > INT32_MAX,", "(last >= INT32_MAX,", "DISK-13"),
    ),
    *_in(
        "verifying.log_blocks",
        ("(self.first > self.before + 1)", "(self.first > self.before + 2)", "DISK-19"),
    ),
    *_in(
        "verifying.producer_checks",
        (
            "(last - base) & SEQUENCE_MAX < 1 << 30", "(last - base) & SEQUENCE_MAX <= 1 << 30",
            "DISK-30",
        ),
    ),
    *_in("verifying.epoch_checks", ("epochs < before,", "epochs <= before,", "DISK-28")),
    *_in(
        "verifying.transaction_checks",
        ("elif age < HANGS_MS:", "elif age <= HANGS_MS:", "DISK-32"),
        ("or claimed <= before:", "or claimed < before:", "DISK-11"),
        ("base <= told[2] < end", "base < told[2] < end", "DISK-74"),
        ("base <= told[2] < end", "base <= told[2] <= end", "DISK-74"),
    ),
    *_in(
        "verifying.lost_markers",
        ("self._first[at] > following", "self._first[at] >= following", "DISK-74"),
        ("first < self._begin", "first <= self._begin", "DISK-74"),
    ),
    *_in(
        "verifying.lost_offsets",
        ('block["position"] >= self', 'block["position"] > self', "DISK-25"),
        ("(distances > log.reach)", "(distances >= log.reach)", "DISK-25"),
    ),
    *_in(
        "verifying.truncated_entries",
        ("0 <= largest <= self._log.max", "0 <= largest < self._log.max", "SEG-7"),
        ("(at >= log_end)", "(at > log_end)", "SEG-7"),
        ("beside.places * 2 < index", "beside.places * 2 <= index", "SEG-7"),
    ),
    *_in(
        "verifying.time_checks", ("times > LAST_MS)", "times >= LAST_MS)", "DISK-57"),
    ),
    *_in(
        "verifying.metadata_snapshots",
        ("known.offset >= start}", "known.offset > start}", "DISK-51"),
        ('if not row["attributes"] & CONTROL:', "if False:", "DISK-51"),
    ),
    *(
        Planted("verifying.metadata_snapshots", right, wrong, tests=(f"{NODE}::{CUT}",))
        for right, wrong in (
            ("size.of(head) < LEGACY_MIN_BYTES", "size.of(head) <= LEGACY_MIN_BYTES"),
            ("len(head) >= size.end", "len(head) > size.end"),
            ('["magic"].place] <= 2', '["magic"].place] < 2'),
        )
    ),
    *_in(
        "verifying.sibling_files",
        (
            "known.state or known.topic == METADATA_TOPIC or not missing",
            "known.topic == METADATA_TOPIC or not missing", "DISK-49",
        ),
    ),
    *_in("verifying.small_files", ("if last >= offset:", "if last > offset:", "DISK-35")),
    *_in(
        "verifying.rocketmq.index_file_checks",
        ("(slots < 0) | (slots >= count)", "(slots < 0) | (slots > count)", "RMQDISK-8"),
        ("is_late = differences > max", "is_late = differences >= max", "RMQDISK-14"),
    ),
    *_in(
        "verifying.rocketmq.queue_walk",
        ('"RMQDISK-36", offsets <= before,', '"RMQDISK-36", offsets < before,', "RMQDISK-36"),
    ),
    *_in(
        "verifying.rocketmq.key_checks", ("(rows.number > 1)", "(rows.number > 2)", "RMQDISK-32"),
    ),
    *_in(
        "verifying.rocketmq.store_checks",
        ("if ends and stored > max(ends):", "if ends and stored >= max(ends):", "RMQDISK-21"),
    ),
    *_in(
        "verifying.rocketmq.store_verification",
        ("furthest_batch(self._store, self._files) < 0",
         "furthest_batch(self._store, self._files) <= 0", "RMQDISK-56"),
    ),
    *_in(
        "reading.store_times",
        ("CLOCK_MS: Final = 3_600_000", "CLOCK_MS: Final = 3_600_001", "RMQDISK-40"),
    ),
    _seen("salvaging/test_overlapping_logs.py", "test_so_many_wrong_entries_disprove_a_log",
          "reading.overlapping_logs", "positions) < ASKED_MIN", "positions) <= ASKED_MIN"),
    _seen("verification/test_found_files.py", "test_a_small_file_is_told_where_it_is_whole",
          "reading.file_contents", '< rows["size"][:-1])', '<= rows["size"][:-1])'),
    _seen("verification/test_not_looked_into.py",
          "test_an_empty_swap_takes_the_place_of_no_later_log",
          "reading.waiting_logs", "max(end, base + 1), sound", "max(end, base + 2), sound"),
    _seen("salvaging/test_moved_messages.py", "test_parts_of_a_file_in_another_order",
          "stretches.rocketmq.desk", "self._later[at - 1][1] > start",
          "self._later[at - 1][1] >= start"),
    _seen("salvaging/test_foreign_messages.py",
          "test_three_units_show_that_a_file_is_of_another_store",
          "stretches.rocketmq.file_rules", "wrong >= RIGHT_MIN", "wrong > RIGHT_MIN"),
    _seen("verification/test_rocketmq_odd_stores.py", "test_a_log_that_was_begun_again",
          "verifying.rocketmq.log_kinship", "ends.log_time < 0", "ends.log_time <= 0"),
    _seen("salvaging/test_cut_records.py", "test_offsets_rise_within_those_of_a_batch",
          "salvaging.cut_records", "delta < behind[end]", "delta <= behind[end]"),
    _seen("salvaging/test_lost_markers.py", "test_a_snapshot_knows_what_began_before_it",
          "salvaging.lost_markers", "following < offset", "following <= offset"),
    _seen("verification/test_zeroed_store_ends.py", "test_zeros_are_told_where_the_log_goes_on",
          "verifying.rocketmq.lost_end", "end < log.max_offset", "end <= log.max_offset"),
    _seen("verification/test_lost_ends.py", "test_a_time_beyond_the_log_is_kept",
          "verifying.index_log_checks", "> self._log.max_timestamp]",
          ">= self._log.max_timestamp]"),
    Planted(
        "verifying.loss_count", "start = max(start, self._counted_to)", "start = max(start, 0)",
        tests=(f"{COUNTS}::test_a_summary_is_counted_again",),
    ),
    Planted(
        "wording.reporting", "if count > FINDINGS_PER_LAW:", "if count >= FINDINGS_PER_LAW:",
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
        "segproof_harness.reports.causes", "FURTHER) and finding.position is not None:",
        "FURTHER) and finding.position:", tests=(f"{FORMATS}::test_the_page_tells_each_file",),
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

        options = [
            "-q",
            "-x",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore",
            "-m",
            "not slow",
        ]
        code = pytest.main([*options, *(str(TESTS / one) for one in planted.tests)])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            raise LookupError(f"{planted.tests}: pytest ran no such tests ({code!r})")
        return code == pytest.ExitCode.TESTS_FAILED
    from segproof_harness.laws.borders.every_border import TABLES
    from segproof_tests.borders import check_border

    for border in itertools.chain.from_iterable(TABLES.values()):
        if border.law == planted.law:
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
    # The tables are made once, and so are modules of others that the tests import; what checks the
    # tables is imported by each process itself.
    for module in (
        "pytest",
        "hypothesis",
        "typer.main",
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
