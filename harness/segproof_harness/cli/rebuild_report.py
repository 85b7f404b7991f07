# SPDX-License-Identifier: Apache-2.0
"""What the verb `rebuild` writes: rows of files, findings, and the closing summary."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from segproof.counts import plural
from segproof.hints import changes, writes
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    Show,
    complain,
    suggest,
    summarise,
    write_findings,
    write_row,
)
from segproof_harness.reports.terminal import Color, Lines

IN_PLACE = changes(
    "replace the index files",
    only_if="the broker is stopped",
    if_wrong="the command refuses, and changes nothing",
    copy_step="--backup keeps the old files",
)
ELSEWHERE = writes("make new index files with --out; the old ones stay as they are")
"""What the command does that a dry run prints: as it was asked for."""
STORE_FIELDS = ("path", "entries", "old_entries", "changed", "backup")
"""What is told of each index file of a store."""
FIELDS = (*STORE_FIELDS, "index_interval_bytes", "interval_from", "law", "why")
"""What is told of each index file of a partition."""


class Steps:
    """Lets several steps of work, one after the other, fill one progress bar."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._before = self._done = 0

    def begin(self) -> None:
        """Begin the next step."""
        self._before = self._done

    def show(self, done: int, total: int) -> None:
        """Show how far the present step is."""
        self._done = self._before + done
        self._show(self._done, self._before + total)


class RebuildReport:
    """Writes what was done in each partition and store, then a summary of all."""

    def __init__(self, output_format: Format, to_write: Sequence[object] = ()) -> None:
        """`to_write` is the command that writes what a dry run tells; empty: this is none."""
        self._format = output_format
        self._to_write = to_write
        self._is_dry = bool(to_write)
        self._lines = Lines(Color.NEVER)
        self._started = time.monotonic()
        self._places: list[str] = []
        self._files = self._changed = self._kept = self._errors = self._left = 0
        self._words = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was told so far."""
        return not self._places

    def add(
        self,
        kind: str,
        rebuilt: Any,
        fields: Sequence[str],
        left_out: Iterable[str],
        words: str = "",
        *,
        is_alone: bool = False,
    ) -> None:
        """Write what was done in one place; `kind` says what it is, `words` how, if it is alone.

        Text has files that stayed the same only of a place that is alone.
        """
        self._places.append(kind)
        self._words = words
        for file in rebuilt.files:
            if file.changed or is_alone or self._format is Format.JSONL:
                self._write_file(file, fields)
        write_findings((one.to_json() for one in rebuilt.findings), self._format)
        for line in left_out:
            complain(line)
        self._files += len(rebuilt.files)
        self._changed += sum(file.changed for file in rebuilt.files)
        self._kept += sum(file.is_kept for file in rebuilt.files)
        self._errors += len(rebuilt.findings)
        self._left += bool(rebuilt.findings)

    def fail(self, kind: str, path: str, error: str) -> None:
        """Say that a place could not be rebuilt."""
        self._places.append(kind)
        self._left += 1
        self._errors += 1
        complain(error if error.startswith(path) else f"{path}: {error}")

    def finish(self, *, is_single: bool) -> None:
        """Write the summary; exit code 1 where something was not rebuilt, 2 if it was all."""
        is_single &= len(self._places) == 1
        if self._left and is_single:
            summarise(f"nothing was written: {plural(self._errors, 'error')}")
            raise typer.Exit(EXIT_FINDINGS)
        verb = "would change" if self._is_dry else "changed"
        stay = "1 sound one stays" if self._kept == 1 else f"{self._kept} sound ones stay"
        kept = f", {stay}" if self._kept else ""
        kinds = [plural(self._places.count(one), one) for one in dict.fromkeys(self._places)]
        places = "" if is_single else f"{' and '.join(kinds)}: "
        left = f", {self._left} not rebuilt, with {plural(self._errors, 'error')}" * bool(
            self._left
        )
        nothing = "; nothing was written" if self._is_dry else ""
        summarise(
            f"{places}{self._changed} of {plural(self._files, 'index file')} {verb}{kept}"
            f"{self._words * is_single}{left}, in {time.monotonic() - self._started:.1f} s{nothing}"
        )
        if self._is_dry and self._changed:
            what = IN_PLACE if "--in-place" in self._to_write else ELSEWHERE
            suggest(what, *self._to_write)
        if self._left:
            raise typer.Exit(EXIT_FINDINGS)

    def _write_file(self, file: Any, fields: Sequence[str]) -> None:
        """Write what was done to one file; as text only if it was made new."""
        if self._format is Format.JSONL:
            write_row({name: getattr(file, name) for name in fields}, self._format)
            return
        if file.is_kept:
            return
        verb = "unchanged"
        if file.changed:
            verb = "would change" if self._is_dry else "changed"
        before = "none" if file.old_entries is None else file.old_entries
        if file.old_entries is None and file.was_there:
            before = "an unsound file" if "law" in fields else "a file of another size"
        law = getattr(file, "law", None)
        why = f"; {law}: {file.why}" if law else ""
        backup = f"; old file: {file.backup}" if file.backup else ""
        entries = plural(file.entries, "entry")
        self._lines.write(
            f"{verb}: {file.path}: {entries}, before: {before}{why}{backup}", indent=2
        )
