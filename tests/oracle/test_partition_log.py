# SPDX-License-Identifier: Apache-2.0
"""What the logs of Kafka's releases do against their own contract, on the smallest history.

Each test states what the real log does, so that a release which mends it is noticed.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from segproof_harness.histories.compare import Comparison
from segproof_harness.histories.traces import Trace, read_trace
from segproof_harness.releases.child_messages import reason_without
from segproof_harness.releases.pinned import RELEASES
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.kafka.log_drawing import ODD_NAMES, opening_of_log
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.kafka.format.record_releases import MessagesAloneAreWritten
from segproof_model.releases import release_named

pytestmark = pytest.mark.needs("java", "jpype")

PARTITION_LOG = "partition-log"
TRACES = Path(__file__).parent / "upstream"
ASKED = [
    name
    for name, release in RELEASES.items()
    if release.system == "kafka" and reason_without(PARTITION_LOG, release) is None
]
"""The releases whose log can be asked."""
SERVED = [name for name in ASKED if not release_named(name).has(MessagesAloneAreWritten)]
"""The releases that know the batches of the histories."""
BOUNDED = [name for name in SERVED if RELEASES[name].number >= (2, 4)]
"""The releases whose log itself knows the high watermark."""


def answers(
    name: str, release: str, refused: str | None = None
) -> list[tuple[str, Any, dict[str, Any]]]:
    """Return (operation, answer, accessors) for each operation of a trace, on a real log.

    An error is answered by its kind; there is none but `refused`.
    """
    trace = read_trace(TRACES / f"{name}.jsonl")
    subject = OracleSubject(structure_named(PARTITION_LOG), RELEASES[release])
    subject.prepare(trace.setup, trace.operations, 1)
    assert subject.start(trace.setup).error is None
    found = []
    for operation in trace.operations:
        outcome = subject.apply(operation)
        assert outcome.error in (None, refused), outcome.detail
        seen = {name: one.value for name, one in subject.observe().items()}
        found.append((operation.name, outcome.error or outcome.value, seen))
    subject.stop()
    return found


def answers_of(operation: str, found: list[tuple[str, Any, dict[str, Any]]]) -> list[Any]:
    """Return what one operation answered, each time."""
    return [answer for name, answer, _ in found if name == operation]


@pytest.mark.parametrize("release", SERVED)
def test_the_model_knows_each_history(release: str) -> None:
    """Under the release's profile it gives the same answers and bytes."""
    structure = structure_named(PARTITION_LOG)
    subject = OracleSubject(structure, RELEASES[release])
    comparing = Comparison(structure, release, [subject], image_every=1)
    paths = sorted(TRACES.glob("*.jsonl"))
    assert paths
    for path in paths:
        trace = replace(read_trace(path), profile_name=release)
        found = comparing.run(trace)
        assert found is None, f"{path.name}: {found.message()}"


@pytest.mark.checks("FILE-2", "LOAD-2", "LOAD-4", "LOAD-18")
@pytest.mark.parametrize("release", ASKED)
def test_the_model_knows_odd_names(release: str) -> None:
    """A file whose name is not as Kafka writes it ends a loading, goes, or stays as modelled.

    Up to 0.11 the segment of a swap with too short a name takes that name; this is not in the
    model, nor where the releases up to 2.8 end with a snapshot without an offset.
    """
    structure = structure_named(PARTITION_LOG)
    comparing = Comparison(structure, release, [OracleSubject(structure, RELEASES[release])])
    since = {"5.log.swap": (1,), "foo.snapshot": (3,)}
    late = [name for name, first in since.items() if RELEASES[release].number >= first]
    for name in (*ODD_NAMES, *late):
        trace = Trace(PARTITION_LOG, release, Setup(opening_of_log(), {name: b""}), ())
        found = comparing.run(trace)
        assert found is None, f"{name}: {found.message()}"


@pytest.mark.checks("PROD-14", "LOG-13", "LOG-8")
@pytest.mark.parametrize("release", BOUNDED)
def test_truncation_brings_an_ended_transaction_back(release: str) -> None:
    """With every producer expired, a truncation loads a snapshot and reads no log behind it.

    The transaction that the snapshot holds as open was aborted and replicated; it is open again:
    the last stable offset falls from 4 to 0 and stays, so that readers of committed records get
    nothing. The next marker writes a second entry into the transaction index.
    """
    found = answers("ended_transaction_comes_back", release)
    names = [name for name, _, _ in found]
    before = found[names.index("truncate_to") - 1]
    after = found[names.index("truncate_to") + 1]
    assert before[1][:2] == ((), ())
    assert before[2]["last_stable_offset"] == 4
    assert after[1][1] == ((1, 0, None),)
    assert after[2]["last_stable_offset"] == 0
    _, read, seen = found[names.index("read")]
    assert read[1] is None
    assert seen["high_watermark"] == 4
    assert found[-1][1] == ((0, 1, 0, 1, 2), (0, 1, 0, 4, 5))


@pytest.mark.checks("LOG-6")
@pytest.mark.parametrize("release", BOUNDED)
def test_reads_pass_a_high_watermark_in_a_removed_segment(release: str) -> None:
    """A high watermark whose place was in a segment that a truncation removed bounds no read.

    It is 5; the batch at offset 10, which nobody has replicated, is read until it is set anew. In
    2.8 a truncation sets it anew, so that it bounds.
    """
    found = answers("reads_pass_a_high_watermark_in_a_removed_segment", release)
    before, passing, mended = [one for one in found if one[0] == "read"]
    sizes = [read[1][1] for _, read, _ in (before, passing, mended)]
    assert sizes == [106, 106 if release == "kafka-2.8.2" else 180, 106]
    assert before[2]["high_watermark"] == passing[2]["high_watermark"] == 5


@pytest.mark.checks("LOAD-5", "LOAD-15")
@pytest.mark.parametrize("release", SERVED)
def test_an_epoch_begins_late_after_a_rebuilt_index(release: str) -> None:
    """With the file of the epochs gone too, a rebuilt index teaches epochs before older segments.

    Epoch 0 begins at offset 0; after a crash that took the index of the second segment and the file
    of the epochs, it begins at 1, where that segment does: the recovery of the first one, which
    follows, does not enter an epoch that is known. Up to 2.8 a rebuilt index teaches none; from 2.1
    to 2.4 a recovery does not enter epoch 0 either.
    """
    found = answers("epoch_begins_late_after_a_rebuilt_index", release)
    recovered: tuple[tuple[int, int], ...] = ((0, 1),)
    if release == "kafka-2.8.2" or RELEASES[release].number < (2, 1):
        recovered = ((0, 0),)
    elif RELEASES[release].number < (2, 8):
        recovered = ()
    assert answers_of("leader_epoch_cache", found) == [((0, 0),), recovered]


@pytest.mark.checks("LOAD-5", "LOAD-8")
@pytest.mark.parametrize("release", SERVED)
def test_a_lost_index_hides_a_cut(release: str) -> None:
    """A damaged segment whose index is lost is cut when it is opened; what lies behind it stays.

    The recovery that follows finds it sound: offset 2 is gone, offset 3 is there. Releases from 1.0
    to 2.2 do not see that the index is missing.
    """
    found = answers("hole_where_an_index_is_lost", release)
    behind = () if (1,) <= RELEASES[release].number < (2, 4) else ((3, 70),)
    whole = ((0, 70), (1, 140), (3, 70))
    assert answers_of("log_segments", found) == [whole, ((0, 70), (1, 70), *behind)]


@pytest.mark.checks("SEG-20", "LOAD-17")
@pytest.mark.parametrize("release", SERVED)
def test_a_torn_append_lowers_the_log_end(release: str) -> None:
    """A batch whose stored offset, outside of its checksum, was not written is kept as batch 0.

    Two records were flushed, and the recovery point is 2. After the loss of power the log ends at
    1, so the next batch gets the offset of a flushed one.
    """
    found = answers("torn_append_lowers_the_log_end", release)
    assert answers_of("log_segments", found) == [((0, 210),), ((0, 210),), ((0, 280),)]
    ends = [seen["log_end_offset"] for name, _, seen in found if name == "log_segments"]
    assert ends == [3, 1, 2]


@pytest.mark.checks("SEG-20", "LOAD-9", "LOAD-17")
@pytest.mark.parametrize("release", BOUNDED)
def test_a_torn_append_empties_the_segment(release: str) -> None:
    """The same, where the batch gets an index entry: the flushed records of its segment are gone.

    Up to 2.2 the log is not loaded.
    """
    found = answers("torn_append_empties_the_segment", release)
    assert answers_of("log_segments", found) == [((0, 210),), ((0, 0),), ((0, 70),)]


@pytest.mark.checks("SEG-27", "LOAD-6")
@pytest.mark.parametrize("release", SERVED)
def test_a_torn_append_ends_loading(release: str) -> None:
    """The lost offset is below the base of a later segment, which can't be split. Up to 1.1 it is
    kept.
    """
    refused = "invalid-argument" if RELEASES[release].number >= (2,) else None
    found = answers("torn_append_ends_loading", release, refused)
    assert answers_of("crash_reopen", found) == [refused or "opened"]


@pytest.mark.checks("LOG-11", "LOAD-17")
@pytest.mark.parametrize("release", SERVED)
def test_a_roll_leaves_a_hole(release: str) -> None:
    """A new segment has its name before the bytes of the old one are flushed.

    A loss of power leaves the new name, and the old bytes up to the last write-back: here offset 1
    is lost. The log is loaded without an error, and goes on at the base of the new segment.
    """
    found = answers("roll_leaves_a_hole", release)
    assert answers_of("log_segments", found) == [
        ((0, 140), (2, 0)),
        ((0, 70), (2, 0)),
        ((0, 70), (2, 70)),
    ]


@pytest.mark.checks("PROD-14", "LOAD-8")
@pytest.mark.parametrize("release", SERVED)
def test_an_open_transaction_begins_late_after_a_lost_snapshot(release: str) -> None:
    """A recovery that reads a producer's next batch does not ask the snapshot that it began with.

    The transaction of producer 3 begins at offset 0; after a crash that took the snapshot at 2, it
    begins at 1, and so does the entry of its abort. Since 2.8 it is where it was.
    """
    found = answers("open_transaction_begins_late_after_a_lost_snapshot", release)
    begins = 1 if RELEASES[release].number < (2, 8) else 0
    ongoing = [known[1] for known in answers_of("producer_state_manager", found)]
    assert ongoing == [((3, 0, None),), ((3, begins, None),)]
    assert found[-1][1] == ((0, 3, begins, 3, 4),)


@pytest.mark.checks("PROD-14", "LOG-8")
@pytest.mark.parametrize("release", BOUNDED)
def test_undecided_records_are_read_after_a_lost_snapshot(release: str) -> None:
    """In 2.4 a reader of committed records gets the first batch of that transaction.

    That is before its abort, and behind it: no entry of the transaction index has that offset.
    """
    found = answers("undecided_records_are_read_after_a_lost_snapshot", release)
    is_lost = RELEASES[release].number < (2, 8)
    reads = [(read[1] is not None and read[1][1], read[3]) for read in answers_of("read", found)]
    nothing = (0 if is_lost else False, ())
    undecided = (70, ()) if is_lost else nothing
    aborted = () if is_lost else ((0, 3, 0, 3, 4),)
    assert reads == [nothing, undecided, (70, aborted)]


@pytest.mark.checks("LOG-13", "PROD-10")
@pytest.mark.parametrize("release", SERVED)
def test_a_truncation_ends_half_done(release: str) -> None:
    """In 2.4 the place of the first unstable offset is looked up when the log ends before it.

    The segments are cut by then; the epochs, the recovery point and the producers are not. The same
    truncation has nothing to do any more, and the batch that it took is answered as a repeated one:
    it is acknowledged, and not written.
    """
    is_half = RELEASES[release].number[:2] == (2, 4)
    found = answers(
        "truncation_ends_half_done", release, refused="out-of-range" if is_half else None
    )
    assert answers_of("truncate_to", found) == ["out-of-range" if is_half else True, False]
    assert answers_of("leader_epoch_cache", found)[0] == (((0, 0), (1, 1)) if is_half else ())
    (producers,) = answers_of("producer_state_manager", found)
    assert producers[1] == (((3, 1, None),) if is_half else ())
    name, acknowledged, seen = found[-2]
    assert name == "append_as_leader"
    assert acknowledged[:2] == ((1, 1) if is_half else (0, 0))
    assert seen["log_end_offset"] == (0 if is_half else 1)
    assert seen["recovery_point"] == (2 if is_half else 0)


@pytest.mark.checks("LOG-12")
@pytest.mark.parametrize("release", SERVED)
def test_a_roll_of_an_empty_segment_leaves_no_room(release: str) -> None:
    """Up to 2.0 a roll to where the active, empty segment begins is refused when it is done.

    The segment in its place has indexes of no bytes, so that the next append rolls again and is
    refused, too; that roll makes indexes of their full size, but in 0.11, which refuses each.
    """
    is_old = RELEASES[release].number < (2, 1)
    refused = "kafka-error" if is_old else None
    found = answers("roll_of_an_empty_segment_leaves_no_room", release, refused=refused)
    assert answers_of("roll", found) == [1, refused or 1]
    first, second = answers_of("append_as_leader", found)[1:]
    size = 70 if is_old else 140
    if RELEASES[release].number < (1,):
        size, second = 0, (second,)
    expected = {0: (refused, refused), 70: (refused, 1), 140: (1, 2)}[size]
    assert (first if is_old else first[0], second[0]) == expected
    assert answers_of("log_segments", found)[1] == ((0, 70), (1, size))


@pytest.mark.checks("LOG-12", "LOG-11")
@pytest.mark.parametrize("release", SERVED)
def test_an_index_for_one_timestamp_takes_no_batch(release: str) -> None:
    """With `segment.index.bytes` of 16 the time index is full before its first entry.

    Each append rolls the empty segment, which releases up to 2.0 refuse: such a log takes no batch.
    """
    is_old = RELEASES[release].number < (2, 1)
    refused = "kafka-error" if is_old else None
    found = answers("index_for_one_timestamp_takes_no_batch", release, refused=refused)
    appended = answers_of("append_as_leader", found)
    offsets = [answer if is_old else answer[0] for answer in appended]
    assert offsets == ([refused] * 3 if is_old else [0, 1, 2])
    assert found[-1][2]["log_end_offset"] == (0 if is_old else 3)


@pytest.mark.checks("LOAD-3", "LOAD-2")
@pytest.mark.parametrize("release", SERVED)
def test_the_segment_below_a_swap_is_lost(release: str) -> None:
    """Up to 1.1 a swap whose segments are gone takes the place of the one below, which ends before.

    A crash between the rename of the replaced segments and that of the swap leaves it so.
    """
    is_lost = RELEASES[release].number < (2,)
    found = answers("segment_below_a_swap_is_lost", release)
    bases = [base for base, _ in answers_of("log_segments", found)[0]]
    assert bases == ([10] if is_lost else [0, 10])


@pytest.mark.checks("LOAD-6", "LOAD-5")
@pytest.mark.parametrize("release", SERVED)
def test_a_load_splits_for_ever(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment that overflows stays where no part of it begins where it does, and so does its time
    index, which is corrupt: from 2.0 to 2.2 each further loading splits that segment again.
    """
    trace = read_trace(Path(__file__).parent / "endless" / "load_splits_for_ever.jsonl")
    subject = OracleSubject(structure_named(PARTITION_LOG), RELEASES[release])
    assert "log_segments" not in subject.absent.left_out  # its classes are loaded now
    is_endless = (2,) <= RELEASES[release].number < (2, 3)
    if is_endless:  # Any limit shows it, and who waits longer learns no more.
        monkeypatch.setattr("segproof_harness.releases.release_subject.OPENING_SECONDS", 1.0)
    model = ModelSubject(structure_named(PARTITION_LOG), release_named(release))
    for one in (model, subject):
        assert one.start(trace.setup).error == ("endless" if is_endless else None)
    if not is_endless:
        parts = (1, 2**31 + 9) if RELEASES[release].number >= (2, 4) else ()
        found = subject.apply(trace.operations[0]).value
        assert [base for base, _ in found] == [0, *parts]
    subject.stop()


@pytest.mark.checks("LOAD-19", "LOAD-14")
@pytest.mark.parametrize("release", SERVED)
def test_a_lowered_index_size_ends_loading(release: str) -> None:
    """With indexes longer than `segment.index.bytes`, a load after a clean stop cuts one and fails.

    A recovery fails as often as it is tried, since the entries do not fit; with the old size it
    succeeds. After clean stops alone the third load does.
    """
    found = answers("lowered_index_size_ends_loading", release, "invalid-argument")
    refused = "invalid-argument"
    opened = [answer for name, answer, _ in found if name.endswith("reopen")]
    assert opened == [*[refused] * 3, "opened", *[refused] * 2, "opened"]
    assert len(set(answers_of("log_segments", found))) == 1
