# SPDX-License-Identifier: Apache-2.0
"""The parts of `segproof.verify`: names, files, segments, directories. Nothing here is public."""
