# SPDX-License-Identifier: Apache-2.0
"""The picture of a session in README.md: a real run of `verify` and `salvage` on a damaged copy."""

import fcntl
import io
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from segproof_harness.files.shipped_directories import partition_of, scenarios

COLUMNS = 96
DAMAGED = "00000000000000000060.log"
DAMAGES = {25310: b"\x7f", 60000: b"oops"}
"""Wrong bytes of the log by position: in the size of a batch, and in a value of another one."""
COMMANDS = (
    "segproof verify disk --no-notes",
    "segproof salvage disk/plain-0 --out saved",
    "segproof verify saved --summary",
)
FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
"""What a picture would load from the network."""


def damaged_copy(folder: Path) -> None:
    """Copy a partition that ships with the package into `folder`/disk; damage two batches."""
    places = map(partition_of, scenarios())
    sound = next(path for path in places if path.name == "plain-0")
    disk = folder / "disk"
    shutil.copytree(sound, disk / sound.name)
    log = disk / sound.name / DAMAGED
    with log.open("r+b") as file:
        for position, wrong in DAMAGES.items():
            file.seek(position)
            file.write(wrong)
    os.utime(log, (0, 0))  # a file that changed just now may be one that a broker writes


def shown_by(command: str, folder: Path) -> str:
    """Return what a command writes on a terminal, then what it writes to stderr."""
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("4H", 24, COLUMNS, 0, 0))
    done = subprocess.Popen(
        [sys.executable, "-m", "segproof_harness.cli", *command.split()[1:]],
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", "COLUMNS": str(COLUMNS)},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    written = b""
    while block := _read(reading):
        written += block
    os.close(reading)
    _, summary = done.communicate()
    return written.decode().replace("\r\n", "\n") + re.sub(r"\d+\.\d s\b", "... s", summary)


def _read(descriptor: int) -> bytes:
    """Return the next bytes of a terminal; none where its writer has ended."""
    try:
        return os.read(descriptor, 65536)
    except OSError:  # EIO, on Linux
        return b""


def picture() -> str:
    """Return the picture, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        damaged_copy(folder)
        for command in COMMANDS:
            console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
            console.print(Text.from_ansi(shown_by(command, folder)))
    made = console.export_svg(
        title="two damaged batches in a log",
        code_format=FONTS.sub("", CONSOLE_SVG_FORMAT),
        unique_id="session",
    )
    return "\n".join(line.rstrip() for line in made.splitlines()) + "\n"


def pages() -> dict[str, str]:
    """Return the picture by path."""
    return {"_static/session.svg": picture()}
