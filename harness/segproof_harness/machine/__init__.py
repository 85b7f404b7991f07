# SPDX-License-Identifier: Apache-2.0
"""A simulated machine behind `segproof.files.Files`: it loses power, and its calls fail."""
