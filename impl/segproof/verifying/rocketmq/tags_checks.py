# SPDX-License-Identifier: Apache-2.0
"""The tags codes in the units of consume queues, compared with the tags of the messages.

Laws: RMQDISK-50.
Not covered: the delivery time in the units of delayed messages, which depends on the broker's
  delay levels; addresses in an extension file.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from segproof.findings import Severity
from segproof.reading.rows import Int64Array
from segproof.rocketmq.consume_queue import EXTENSION_MAX, UNIT_BYTES
from segproof.rocketmq.message import TAGS, DispatchRequest, is_delayed
from segproof.wording.reporting import Described, Reporter
from segproof.wording.rules import REMAKE_STORE, declare

declare("index-service", Severity.ERROR, REMAKE_STORE, "RMQDISK-50")

TAGS_SHOWN = 127
"""Characters of the tags of a message that a finding shows."""


def check_tags_codes(
    path: str,
    first: int,
    places: Int64Array,
    codes: Int64Array,
    requests: Sequence[DispatchRequest],
    reporter: Reporter,
) -> None:
    """Report units of a file at `path` whose tags code is not that of their message.

    `places` are the indexes of the units in the file, `codes` their tags codes, `requests` their
    messages. `first` is the queue offset of the first unit of the file.
    """
    wanted = np.array([one.tags_code for one in requests], np.int64)
    rows: NDArray[np.intp] = np.flatnonzero((codes != wanted) & (codes > EXTENSION_MAX))
    wrong = np.array([row for row in rows.tolist() if not is_delayed(requests[row])], np.intp)

    def describe(number: int) -> Described:
        row = wrong[number]
        tags = dict(requests[row].properties_map or ()).get(TAGS)
        tagged = "no tags" if tags is None else f"the tags {tags[:TAGS_SHOWN]}"
        return Described(
            f"the unit {first + int(places[row])} has the tags code {codes[row]}, and its message"
            f" at offset {requests[row].commit_log_offset} has {tagged}, whose code is"
            f" {wanted[row]}: consumers that subscribe to tags miss it",
            int(wanted[row]),
            int(codes[row]),
        )

    reporter.at(path).add_rows("RMQDISK-50", places[wrong] * UNIT_BYTES, describe)
