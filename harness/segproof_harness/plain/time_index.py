# SPDX-License-Identifier: Apache-2.0
"""How the plain time index is driven."""

from segproof_harness.plain.indexes import described
from segproof_model.kafka.format.time_index import TimeIndex

PLAIN = described(TimeIndex, "remembered_entry")
