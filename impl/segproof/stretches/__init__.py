# SPDX-License-Identifier: Apache-2.0
"""What lies in damaged logs, as facts without verdicts, and the one decision about each piece."""
