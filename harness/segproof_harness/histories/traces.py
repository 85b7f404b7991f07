# SPDX-License-Identifier: Apache-2.0
"""A history as a file: JSON lines, the header first, then one operation a line.

Layout: {"trace": 1, "structure", "profile", "seed", "setup": {"arguments", "files"}}, then
{"operation": name, argument: value, ...}; bytes are {"base64": "..."}.
A trace that is read is untrusted: every name, argument and size is checked.
"""

import errno
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segproof.files import NOT_REGULAR
from segproof_harness.structures.kinds import NAME, PATH
from segproof_harness.structures.operations import Operation, Value, from_json_value, to_json_value
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import (
    STRUCTURE_IDS,
    Parameter,
    Structure,
    structure_named,
)
from segproof_model.releases import RELEASES

FORMAT = 1
LINE_BYTES_MAX = 1 << 24
OPERATIONS_MAX = 1_000_000


class TraceError(ValueError):
    """A trace that can't be replayed; the text names the file, the line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A history, and what it takes to run it."""

    structure_id: str
    profile_name: str
    """The profile under which it was made."""
    setup: Setup
    operations: tuple[Operation, ...]
    seed: int | None = None

    def to_lines(self) -> Iterable[str]:
        """Yield the lines of the file, without line ends."""
        header = {
            "trace": FORMAT,
            "structure": self.structure_id,
            "profile": self.profile_name,
            "seed": self.seed,
            "setup": {
                "arguments": _written(self.setup.arguments),
                "files": _written(self.setup.files),
            },
        }
        yield json.dumps(header)
        for operation in self.operations:
            yield json.dumps(operation.to_json())

    def to_text(self) -> str:
        """Return the whole file."""
        return "".join(f"{line}\n" for line in self.to_lines())

    def write(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.to_text(), encoding="ascii")


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json_value(value) for name, value in values.items()}


def read_trace(path: str | Path) -> Trace:
    """Read a trace file. Raises TraceError, and OSError if it can't be read."""
    operations = []
    header: Trace | None = None
    with open(path, "rb", opener=_open_regular) as file:
        for number in range(1, OPERATIONS_MAX + 3):
            line = file.readline(LINE_BYTES_MAX + 1)
            if not line:
                break
            if len(line) > LINE_BYTES_MAX:
                raise TraceError(f"{path}: line {number}: more than {LINE_BYTES_MAX} bytes")
            try:
                value = _parsed(line)
                if header is None:
                    header = _header(value)
                else:
                    operations.append(_operation(value, structure_named(header.structure_id)))
            except ValueError as error:
                raise TraceError(f"{path}: line {number}: {error}") from None
        else:
            raise TraceError(f"{path}: more than {OPERATIONS_MAX} operations")
    if header is None:
        raise TraceError(f"{path}: line 1: the file is empty; a trace begins with a header")
    return Trace(
        header.structure_id, header.profile_name, header.setup, tuple(operations), header.seed
    )


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file only: a named pipe would be waited for, a device may have no end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise IsADirectoryError(errno.EISDIR, NOT_REGULAR, path)
    return descriptor


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _header(value: dict[str, Any]) -> Trace:
    if value.get("trace") != FORMAT:
        raise ValueError(f'not the header of a trace: "trace" must be {FORMAT}')
    structure_id, profile, seed = value.get("structure"), value.get("profile"), value.get("seed")
    if not isinstance(structure_id, str) or structure_id not in STRUCTURE_IDS:
        raise ValueError(f"no structure {structure_id!r}; known: {', '.join(STRUCTURE_IDS)}")
    if not isinstance(profile, str) or profile not in RELEASES:
        raise ValueError(f"no profile {profile!r}; known: {', '.join(RELEASES)}")
    if seed is not None and type(seed) is not int:
        raise ValueError("seed must be an integer or null")
    setup = value.get("setup")
    if not isinstance(setup, dict) or not isinstance(setup.get("arguments"), dict):
        raise ValueError('"setup" must be an object with "arguments"')
    files = setup.get("files", {})
    if not isinstance(files, dict):
        raise ValueError('"files" of the setup must be an object')
    structure = structure_named(structure_id)
    structure.check_profile(profile)
    kind = PATH if structure.takes_folders else NAME
    contents = {}
    for name, written in files.items():
        data = from_json_value(written)
        if kind.refusal("file", name) or not isinstance(data, bytes):
            raise ValueError(f"setup file {name!r} must be a plain name with base64 bytes")
        contents[name] = data
    arguments = _arguments(setup["arguments"], structure.opening, "open")
    return Trace(structure_id, profile, Setup(arguments, contents), (), seed)


def _operation(value: dict[str, Any], structure: Structure) -> Operation:
    name = value.pop("operation", None)
    kind = structure.operation(name) if isinstance(name, str) else None
    if kind is None:
        known = ", ".join(sorted(structure.by_name()))
        raise ValueError(f"{structure.structure_id} has no operation {name!r}; known: {known}")
    return Operation(kind.name, _arguments(value, kind.parameters, kind.name))


def _arguments(
    given: dict[str, Any], parameters: tuple[Parameter, ...], name: str
) -> dict[str, Value]:
    wanted = [parameter.name for parameter in parameters]
    if set(given) != set(wanted):
        raise ValueError(f"{name} takes the arguments {wanted}, not {list(given)}")
    arguments = {parameter.name: from_json_value(given[parameter.name]) for parameter in parameters}
    for parameter in parameters:
        refusal = parameter.refusal(arguments[parameter.name])
        if refusal is not None:
            raise ValueError(f"{name}: {refusal}")
    return arguments
