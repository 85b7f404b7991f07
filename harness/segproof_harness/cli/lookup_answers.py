# SPDX-License-Identifier: Apache-2.0
"""How the verb `lookup` writes an answer, and the steps that led to it."""

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any

from segproof_harness.cli.common import (
    Format,
    with_times,
    write_line,
    write_prose,
    write_row,
)
from segproof_harness.cli.lookup_messages import lines_of_message
from segproof_harness.reports.text import reason_of

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes one row for each target; as text the messages of its field `messages` below it."""

    reader: Any
    """Who is asked; its `steps` are those of the last question."""
    explain: bool
    output_format: Format

    def write(
        self, target: int | str, names: Collection[str], ask: Callable[[], tuple[Fields, bool]]
    ) -> bool:
        """Write the fields that `ask` returns, or why there are none; return whether all is well.

        `ask` returns too whether the data is sound. `names` are the fields that are null where it
        raises. Raises: what it raises but SegproofError and OSError.
        """
        from segproof.errors import SegproofError

        row: Fields = {"target": target, **dict.fromkeys(names)}
        is_sound = False
        try:
            fields, is_sound = ask()
            row |= fields
        except SegproofError as error:
            row["reason"] = str(error)
        except OSError as error:
            row["reason"] = reason_of(error)
        steps = self.reader.steps if self.explain else ()
        if self.explain and self.output_format is Format.JSONL:
            row["steps"] = [asdict(step) for step in steps]
        if self.output_format is Format.JSONL:
            write_row(row, self.output_format)
            return is_sound
        messages = row.pop("messages", ())
        if "timestamp" in names:
            row["target"] = with_times({"timestamp": target})["timestamp"]
        write_row(with_times(row), self.output_format)
        for step in steps:
            write_prose(f"  {step}", indent=4)
        for message in messages:
            for line in lines_of_message(message):
                write_line(line)
        return is_sound
