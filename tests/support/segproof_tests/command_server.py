# SPDX-License-Identifier: Apache-2.0
"""`segproof` for the sessions of a page: each command is forked from a process that imported it.

`python -m segproof_tests.command_server SOCKET` is that process. `write_command` writes the
`segproof` that a shell calls. It hands over its arguments, its directory, its environment and its
three streams, and ends as the forked process ends. So no command pays for the imports, which take
half a second.
"""

import contextlib
import gc
import io
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from segproof_harness import cli

MESSAGE_BYTES = 1 << 17
PRELOADED = (
    "segproof.lookup", "segproof.rebuilding", "segproof.salvaging", "segproof.tables",
    "segproof.verification", "segproof_harness.laws.every_law",
)  # fmt: skip
COMMAND = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({socket!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [asked], [0, 1, 2])
sys.exit(int(server.recv(9)))
"""


def write_command(path: Path, address: Path) -> None:
    """Write the program that a shell calls."""
    path.write_text(COMMAND.format(python=sys.executable, socket=str(address)), encoding="utf-8")
    path.chmod(0o755)


@contextlib.contextmanager
def serving(address: Path) -> Iterator[Path]:
    """Run the server until the block ends."""
    server = subprocess.Popen([sys.executable, "-m", __name__, str(address)])
    try:
        while not address.exists():
            assert server.poll() is None, "the server of commands ended"
            time.sleep(0.05)
        yield address
    finally:
        server.kill()
        server.wait()


def next_command(address: str) -> None:
    """Return in a new process for each command, with its arguments, its streams and the rest."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{address}.made")
    listener.listen()
    os.rename(f"{address}.made", address)  # it is there when it listens
    while True:
        asking, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        if os.fork():
            asking.close()
            continue
        listener.close()
        asked, streams, _, _ = socket.recv_fds(asking, MESSAGE_BYTES, 3)
        command = os.fork()
        if command:
            for stream in streams:
                os.close(stream)
            _, status = os.waitpid(command, 0)
            asking.send(str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
        asking.close()
        sys.argv[1:], directory, variables = json.loads(asked)
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(variables)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        return


if __name__ == "__main__":
    for each in PRELOADED:
        import_module(each)
    with contextlib.redirect_stdout(io.StringIO()):
        cli.run(["verify", "--help"])  # imports what each verb does
    gc.freeze()
    next_command(sys.argv[1])
    sys.argv[0] = "segproof"
    cli.main()
