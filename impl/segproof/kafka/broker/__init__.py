# SPDX-License-Identifier: Apache-2.0
"""The log of a partition, and a directory of logs, as a broker opens, appends and loads them."""
