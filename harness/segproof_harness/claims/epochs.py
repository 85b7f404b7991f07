# SPDX-License-Identifier: Apache-2.0
"""Claims of `segproof.kernels.epochs`."""

from segproof_harness.claims.claim import Loop, claim

claim(
    "epochs:kept_by_assign",
    ensures="""
        -1 <= result <= len(entries)
        iff(result == -1, len(entries) > 0 and entries[-1][0] == epoch
            and entries[-1][1] <= start_offset)
        implies(result > 0, entries[result - 1][0] < epoch
            and entries[result - 1][1] < start_offset)
        implies(result >= 0, each(result, len(entries), lambda n: entries[n][0] >= epoch
            or entries[n][1] >= start_offset))
    """,
    loops=(
        Loop(
            """
            0 <= kept <= len(entries)
            each(kept, len(entries), lambda n: entries[n][0] >= epoch
                or entries[n][1] >= start_offset)
            """,
            "kept",
        ),
    ),
    laws="EPOCH-3 EPOCH-4",
)
claim(
    "epochs:end_offset",
    ensures="""
        implies(requested_epoch == -1 or len(entries) == 0, result[0] == -1 and result[1] == -1)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] < requested_epoch,
            result[0] == -1 and result[1] == -1)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] == requested_epoch,
            result[0] == requested_epoch and result[1] == log_end_offset)
        implies(requested_epoch != -1 and len(entries) > 0 and entries[-1][0] > requested_epoch,
            result[0] <= requested_epoch and some(0, len(entries), lambda n:
            result[1] == entries[n][1] and entries[n][0] > requested_epoch
            and (result[0] == entries[n - 1][0] if n > 0 else result[0] == requested_epoch)))
    """,
    loops=(Loop("0 <= higher < len(entries)\nentries[higher][0] > requested_epoch", "higher"),),
    laws="EPOCH-5 EPOCH-6 EPOCH-7",
)
claim(
    "epochs:kept_from_end",
    ensures="""
        0 <= result <= len(entries)
        implies(end_offset < 0, result == len(entries))
        implies(end_offset >= 0 and result > 0, entries[result - 1][1] < end_offset)
        implies(end_offset >= 0, each(result, len(entries), lambda n:
            entries[n][1] >= end_offset))
    """,
    loops=(
        Loop(
            """
            0 <= kept <= len(entries)
            implies(end_offset < 0, kept == len(entries))
            each(kept, len(entries), lambda n: entries[n][1] >= end_offset)
            """,
            "kept",
        ),
    ),
    laws="EPOCH-8",
)
claim(
    "epochs:last_not_behind",
    ensures="""
        -1 <= result < len(entries)
        implies(result >= 0, entries[result][1] <= offset)
        each(result + 1, len(entries), lambda n: entries[n][1] > offset)
    """,
    loops=(
        Loop(
            """
            -1 <= place < len(entries)
            each(place + 1, len(entries), lambda n: entries[n][1] > offset)
            """,
            "place + 1",
        ),
    ),
    laws="EPOCH-9 EPOCH-10",
)
