# SPDX-License-Identifier: Apache-2.0
"""What a verifier says about data: one finding for each broken law, never an exception."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; only errors and warnings make an exit code of 1."""

    ERROR = "error"
    """A law is broken: reads may answer wrongly, or bytes are lost."""
    WARNING = "warning"
    """Something is missing or changing, which costs time or may hide an error."""
    NOTE = "note"
    """Worth knowing and no defect."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken law at one place."""

    law: str
    """Id of the law."""
    severity: Severity
    structure: str
    """Id of the structure, such as `offset-index`."""
    path: str
    """The file or directory."""
    position: int | None
    """Byte in the file, counted from 0, where the entry or batch begins; None: no single place."""
    expected: int | str | None
    actual: int | str | None
    message: str
    """What is wrong, in words."""
    hint: str
    """What to do."""
    reproduce: str
    """One command line that shows the finding again."""

    @property
    def is_defect(self) -> bool:
        """Whether it is more than a note."""
        return self.severity is not Severity.NOTE

    def to_json(self) -> dict[str, int | str | None]:
        """Return the fields by name, in the order of every output, as JSON knows them."""
        return {**asdict(self), "severity": self.severity.value}

    def to_json_line(self) -> str:
        """Return the finding as one line of JSON, in ASCII, without the line's end."""
        return json.dumps(self.to_json())

    def __str__(self) -> str:
        at = "" if self.position is None else f" at byte {self.position}"
        return f"{self.severity.value}: {self.path}{at}: {self.message} [{self.law}]; {self.hint}"
