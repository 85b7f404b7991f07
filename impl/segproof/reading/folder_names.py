# SPDX-License-Identifier: Apache-2.0
"""The names in a folder, for those who look around: a folder that can't be listed has none."""

from segproof.files import Files


def names_of(folder: str, files: Files) -> list[str]:
    """Return the names in a folder; none if it can't be listed."""
    try:
        return files.list_directory(folder)
    except OSError:
        return []
