# SPDX-License-Identifier: Apache-2.0
"""The batches of a partition's logs: what is found there, and what is believed of it."""
