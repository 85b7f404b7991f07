# SPDX-License-Identifier: Apache-2.0
"""The names in a folder, for those who look around: a folder that can't be listed has none."""

import posixpath

from segproof.files import Files, status_of


def names_of(folder: str, files: Files) -> list[str]:
    """Return the names in a folder; none if it can't be listed."""
    try:
        return files.list_directory(folder)
    except OSError:
        return []


def has_folder(path: str, name: str, files: Files) -> bool:
    """Return whether a folder of this name is at a path; what can't be looked at is none."""
    status = status_of(files, posixpath.join(path, name))
    return status is not None and status.is_directory
