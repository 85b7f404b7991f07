# SPDX-License-Identifier: Apache-2.0
"""Files whose names do not tell what they are, such as `fsck` leaves in lost+found.

Each is told by its content, with the name under which a copy of it can be looked into.

Laws: DISK-45, RMQDISK-41.
"""

import posixpath
import re
from collections.abc import Iterable

from segproof.commands import quoted_path
from segproof.files import Files, status_of
from segproof.hints import Hint, writes
from segproof.inventory.loose import ASKED_MAX, LOST_AND_FOUND, is_log_folder, is_named_by_its_owner
from segproof.reading.file_contents import Content, content_of, is_from_fsck
from segproof.reading.new_places import own_place
from segproof.reading.store_paths import OF_NO_STORE
from segproof.verifying.found_places import FoundPlaces
from segproof.verifying.unread_files import KAFKA, ROCKETMQ, not_looked_into
from segproof.wording.reporting import PathReporter, Reporter

MORE = f"only the first {ASKED_MAX} files here that are told by their content were named"


def steps_for(content: Content, path: str, files: Files, places: FoundPlaces | None = None) -> Hint:
    """Return how a file that its content tells is looked into: by a copy with a name.

    A file without records is described by where it belongs.
    """
    if not content.is_log:
        places = places or FoundPlaces(posixpath.dirname(path) or ".", files)
        return places.hint(content)
    own = re.sub(r"[^0-9A-Za-z]+", "_", posixpath.basename(path)).strip("_") or "file"
    folder = f"{own_place('found', posixpath.dirname(path) or '.', path)}.{own}"
    folder += "/commitlog" if content.is_rocketmq else ""
    copy = quoted_path(posixpath.join(folder, content.name))
    owner = "store" if content.is_rocketmq else "partition"
    return writes(
        "copy it to a name that tells what it is, and look into the copy:"
        f" `install -d {quoted_path(folder)}`, `cp -n {quoted_path(path)} {copy}`,"
        f" `segproof verify {copy}` and `segproof dump {copy} --records --max 3`. It belongs to"
        f" the {owner} that lacks these offsets, as `segproof verify` of that says"
    )


def report_by_content(
    report: PathReporter,
    files: Files,
    *,
    is_all: bool = False,
    places: FoundPlaces | None = None,
) -> bool:
    """Report a file that was not looked into, if its content tells what it is; return whether so.

    `is_all`: it is all that was asked for. `places` are those near the folder of the file, if
    others of that folder are asked too.
    """
    if not is_all and not report.reporter.wanted.includes(KAFKA, ROCKETMQ):
        return False
    content = content_of(report.path, files)
    if content is None:
        return False
    not_looked_into(
        report,
        f"its name does not say what it is; by its content it is {content.words}",
        ROCKETMQ if content.is_rocketmq else KAFKA,
        is_all=is_all,
        hint=steps_for(content, report.path, files, places),
    )
    return True


def report_found_files(
    directory: str, names: Iterable[str], files: Files, reporter: Reporter, *, is_all: bool
) -> set[str]:
    """Report the files that a file system check named, or put into lost+found, by their content.

    Return their names. `is_all`: the directory is all that was asked for; then each file of a
    folder without folders is asked.
    """
    known = {name: status_of(files, posixpath.join(directory, name)) for name in names}
    is_of_fsck = posixpath.basename(posixpath.abspath(directory)) == LOST_AND_FOUND
    is_of_fsck |= is_all and not any(one is not None and one.is_directory for one in known.values())
    told = set[str]()
    places = FoundPlaces(directory, files)
    for name, status in known.items():
        if status is None or is_named_by_its_owner(name) or not (is_of_fsck or is_from_fsck(name)):
            continue
        path = posixpath.join(directory, name)
        report = reporter.at(path)
        is_one = status.is_regular and report_by_content(
            report, files, is_all=is_all, places=places
        )
        if status.is_directory and is_log_folder(path, files):
            not_looked_into(report, OF_NO_STORE, ROCKETMQ, is_all=is_all, files=files)
            is_one = True
        told |= {name} if is_one else set()
        if len(told) >= ASKED_MAX:
            not_looked_into(reporter.at(directory), MORE, is_all=is_all, files=files)
            break
    return told
