# SPDX-License-Identifier: Apache-2.0
"""How the plain offset index is driven."""

from segproof_harness.plain.indexes import described
from segproof_model.kafka.format.offset_index import OffsetIndex

PLAIN = described(OffsetIndex, "last_offset")
