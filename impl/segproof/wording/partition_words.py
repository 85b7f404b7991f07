# SPDX-License-Identifier: Apache-2.0
"""Words and laws by which a finding about the folder of a partition is known again.

Laws: DISK-60.
"""

MAY_BELONG_HERE = "no log of this partition has them, and they may belong here"
MAY_LACK = "no log of this partition has by their names, and they may belong here"
LACKING = (MAY_BELONG_HERE, MAY_LACK)
"""Words of a finding about a folder that has what the partition lacks."""
DELETED = ".log.deleted"
REPLACED = "DISK-60"
REST = "no log here has its"
"""Part of the words for the offsets of a log that a broker has removed."""
