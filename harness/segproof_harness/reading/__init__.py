# SPDX-License-Identifier: Apache-2.0
"""Reading real files as a release of Kafka does: `dump` and `lookup` under a profile.

The files are read as found, zero tail and all, and every answer is the model's. `conformance`
compares these answers, and those of the implementation, with recorded answers of real releases.
"""
