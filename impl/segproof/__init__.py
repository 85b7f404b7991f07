# SPDX-License-Identifier: Apache-2.0
"""segproof: read, write, verify and rebuild the index and segment files of Kafka."""
