# SPDX-License-Identifier: Apache-2.0
"""Files for the checks: in memory, made from nothing, and the codecs that the model is given."""
