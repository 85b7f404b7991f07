# SPDX-License-Identifier: Apache-2.0
"""The releases: which behaviours each has. A behaviour says itself which releases have it."""

from segproof_model.kafka.broker import (  # noqa: F401 - loading it makes its behaviours known
    checkpoint_deviations,
    checkpoint_releases,
    epoch_releases,
    log_loader_deviations,
    log_loader_releases,
    log_loader_releases_before_2,
    log_validator_deviations,
    log_validator_releases,
    log_validator_releases_before_0_11,
    partition_log_deviations,
    partition_log_releases,
    partition_log_releases_before_2,
    partition_log_releases_before_2_3,
    partition_log_releases_before_2_8,
    producer_deviations,
    producer_releases,
)
from segproof_model.kafka.format import (  # noqa: F401 - loading it makes its behaviours known
    index_deviations,
    index_releases,
    log_segment_deviations,
    log_segment_releases,
    log_segment_releases_before_2,
    record_deviations,
    record_file_releases,
    record_releases,
)
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.rocketmq.broker import (  # noqa: F401 - loading it makes its behaviours known
    index_service_deviations,
    index_service_releases,
    message_store_deviations,
    message_store_releases,
)
from segproof_model.rocketmq.format import (  # noqa: F401 - loading it makes its behaviours known
    consume_queue_releases,
    index_file_deviations,
    index_file_releases,
    message_deviations,
    message_releases,
)

KAFKA = (
    "4.4.0", "4.3.1", "4.2.2", "4.2.1", "4.1.2", "4.0.2", "4.0.0", "3.9.2", "3.9.0", "3.7.2",
    "3.6.2", "3.5.2", "3.4.1", "2.8.2", "2.4.1", "2.2.2", "2.1.1", "2.0.1", "1.1.1", "0.11.0.3",
    "0.10.2.2",
)  # fmt: skip
"""The releases of Kafka, the newest first."""
ROCKETMQ = (
    "5.5.1", "5.4.0", "5.3.3", "5.1.4", "5.0.0", "4.9.8", "4.9.3", "4.7.1", "4.7.0", "4.3.2",
    "3.2.6",
)  # fmt: skip
"""The releases of RocketMQ, the newest first."""
LINES = {"kafka": KAFKA, "rocketmq": ROCKETMQ}
"""The releases of each system."""


def _line_of(behaviour: type[Behaviour]) -> tuple[str, ...]:
    return LINES[behaviour.system()]


def _has(behaviour: type[Behaviour], system: str, number: str) -> bool:
    """Return whether a release has a behaviour, by what that says of itself."""
    span, line = behaviour.releases, _line_of(behaviour)
    if span is None or line is not LINES[system] or number in span.but:
        return False
    oldest = span.oldest or line[-1]
    return line.index(span.newest) <= line.index(number) <= line.index(oldest)


def _rank(behaviour: type[Behaviour]) -> int:
    """Return where a behaviour stands: an older release's behind a newer one's, segproof's last."""
    line, span = _line_of(behaviour), behaviour.releases
    return len(line) if span is None else line.index(span.newest)


BEHAVIOURS = tuple(sorted(Behaviour.known, key=lambda one: (_rank(one), one.__module__)))
"""Every behaviour, in the order in which they go on top of each other: the newest first. Those that
began with one release, and segproof's, go by the names of their modules, and as a module writes
them down: `SizeIsChecked` looks at an index file before `OpeningReadsHeader` reads its header."""
SEGPROOF = Release("segproof", tuple(one for one in BEHAVIOURS if one.of_segproof), BEHAVIOURS)
RELEASES = {
    SEGPROOF.name: SEGPROOF,
    **{
        name: Release(
            name, tuple(one for one in BEHAVIOURS if _has(one, system, number)), BEHAVIOURS
        )
        for system, line in LINES.items()
        for number in line
        for name in (f"{system}-{number}",)
    },
}
"""segproof and every release by name, the newest first."""
NEWEST_KAFKA, NEWEST_ROCKETMQ = RELEASES[f"kafka-{KAFKA[0]}"], RELEASES[f"rocketmq-{ROCKETMQ[0]}"]


def release_named(name: str) -> Release:
    """Return the release. Raises KeyError with the known names."""
    if name not in RELEASES:
        raise KeyError(f"no release {name!r}; known: {', '.join(RELEASES)}")
    return RELEASES[name]
