# SPDX-License-Identifier: Apache-2.0
"""What consumers see of a defect: brokers serve damaged files, mostly without an error.

Upstream: Kafka 4.3.1: LogSegment.read, LocalLog.read, FileLogInputStream.nextBatch, the consumer's
  CompletedFetch; RocketMQ 5.5.1: DefaultMessageStore.getMessage, queryMessage.
"""

from segproof.files import NOT_REGULAR
from segproof.findings import Finding

_FAILS_HERE = "a consumer fails at this batch with a corrupt-record error, until it seeks behind it"
_STOPS_HERE = (
    "a consumer that comes to this byte fails with a corrupt-record error; a fetch of an offset"
    " behind it may fail too"
)
_WRONG_RECORDS = "a consumer may fail at this batch, or be given records with wrong fields"
_CUT_OFF = (
    "a broker reads no further here: fetches of the offsets behind it go on in the next segment,"
    " without an error, and wait in the last segment"
)
_GONE = "consumers pass over these offsets, without an error"
_QUEUE = "a consumer of this queue may miss messages, or be given others"
_BY_KEY = "a query by key may miss messages; reads by offset are not affected"
_OFFLINE = (
    "a broker that starts with it may serve no partition of this data directory; the logs have the"
    " records all the same"
)

OF_LAWS = {
    **dict.fromkeys(("BATCH-2", "BATCH-3", "BATCH-14"), _FAILS_HERE),
    **dict.fromkeys(("DUMP-6", "SCAN-10"), _CUT_OFF),
    **dict.fromkeys(("SCAN-2", "DISK-6", "DISK-23"), _STOPS_HERE),
    **dict.fromkeys(("DISK-4", "DISK-25", "DISK-63", "DISK-70"), _GONE),
    **dict.fromkeys(("RMQDISK-35", "RMQDISK-36", "RMQDISK-37"), _QUEUE),
    **dict.fromkeys(
        ("RMQDISK-23", "RMQDISK-24", "RMQDISK-26", "RMQDISK-27", "RMQDISK-52"),
        "messages in this part of the log can't be read",
    ),
    **dict.fromkeys((f"RMQDISK-{number}" for number in range(28, 34)), _BY_KEY),
    "RMQDISK-55": "consumers are given this message with an empty body",
    "RMQDISK-50": "a consumer that subscribes to tags misses these messages, without an error",
    "RMQDISK-51": "a query by key finds nothing if the broker has other numbers",
    "RMQDISK-40": "a search by time may answer a wrong offset; reads by offset are not affected",
    "DISK-5": "reads are right, and slower until the broker makes the index new",
    "DISK-24": "reads are right, and slower: the broker scans the log behind the last entry",
    "DISK-13": "a consumer may be given records twice, or pass some over",
    "DISK-69": "consumers are given records of another topic, or of other offsets; those that were"
    " here are gone",
    "DISK-74": "a read_committed consumer may miss committed records; once the index is made new by"
    " the log, it may be given aborted ones too",
    "LOG-4": "a consumer may be given records twice, or pass some over",
    **dict.fromkeys(("CKPT-3", "META-2"), _OFFLINE),
}
"""By law."""
OF_STRUCTURES = {
    "offset-index": "a fetch that a wrong entry answers begins at the wrong batch: it may skip"
    " records, without an error",
    "time-index": "a search by time may answer a wrong offset; reads by offset are not affected",
    "transaction-index": "a read_committed consumer may be given aborted records, or miss committed"
    " ones",
    "index-file": _BY_KEY,
}
"""By structure, for its other laws."""
OF_WRONG_KIND = {
    **dict.fromkeys(
        ("offset-index", "time-index", "transaction-index"),
        "a broker that opens it serves no partition of this data directory; the log has the records"
        " all the same",
    ),
    "index-file": "newer brokers do not start, and the key queries of older ones miss messages; the"
    " commit log has the messages all the same",
}
"""By structure, for a folder or another kind of file in the place of an index."""
OF_BATCHES = frozenset(
    {"BATCH-9", "BATCH-10", "BATCH-11", "BATCH-15", "BATCH-16", "BATCH-18", "DISK-14", "DISK-16"}
)


def what_consumers_see(finding: Finding) -> str | None:
    """Return in words what a defect does to readers; None where nothing general can be said."""
    if finding.law == "DISK-6" and finding.structure != "record-file":
        return None
    if finding.law == "DISK-1" and finding.structure in OF_STRUCTURES:
        is_of_wrong_kind = finding.actual == NOT_REGULAR
        return OF_WRONG_KIND[finding.structure] if is_of_wrong_kind else None
    if finding.law in OF_BATCHES:
        return _WRONG_RECORDS
    return OF_LAWS.get(finding.law) or OF_STRUCTURES.get(finding.structure)
