# SPDX-License-Identifier: Apache-2.0
"""The commands that hints print between backticks: what a test follows, and what only reads."""

import re

FOLLOWED = (
    "segproof rebuild", "segproof salvage", "cp", "mv", "rm", "touch", "mkdir", "install", "ln",
    "gzip", "bzip2", "xz", "test",
)  # fmt: skip
"""Commands that do something to files, by their first words."""
READING = (
    "segproof verify", "segproof dump", "segproof lookup", "segproof explain", "cmp", "ls",
    "kafka-topics.sh --describe", "kafka-transactions.sh find-hanging",
    "kafka-metadata-quorum.sh describe", "rpk topic consume",
)  # fmt: skip
"""Commands that only read, by their first words."""
OF_A_CLUSTER = ("kafka-transactions.sh abort", "mqadmin cleanExpiredCQ")
"""Commands that change a running cluster: no test can run them."""
NO_COMMANDS = re.compile(r"--|(?:version: 0|topic_id: ID|config|reset|salvage_store)$")
"""What else stands between backticks: options, lines of files, names of a folder and of methods."""
BETWEEN = re.compile(r"`([^`]+)`")


def commands_in(hint: str) -> list[str]:
    """Return what stands between backticks, as far as it is a command."""
    return [one for one in BETWEEN.findall(hint) if not NO_COMMANDS.match(one)]


def is_followed(command: str) -> bool:
    """Return whether a command does something to files, and has arguments."""
    return any(command.startswith(f"{one} ") for one in FOLLOWED)


def followed_commands(hint: str) -> list[str]:
    """Return the commands of a hint that do something to files."""
    return [one for one in commands_in(hint) if is_followed(one)]


def is_run(command: str) -> bool:
    """Return whether a test runs a command: it has arguments, and needs no cluster."""
    return is_followed(command) or command.startswith(("segproof verify ", "segproof dump "))


def unknown_commands(hint: str) -> list[str]:
    """Return the commands that are known neither as followed nor as reading only."""
    known = (*FOLLOWED, *READING, *OF_A_CLUSTER)
    return [
        command
        for command in commands_in(hint)
        if not any(command == one or command.startswith(f"{one} ") for one in known)
    ]
