"""What uv says when it refuses, as far as anything depends on it."""

from __future__ import annotations

import re

HASH_MISMATCH = re.compile(r"Hash mismatch|Hash-checking is (enabled|required)")
"""What uv says of a file that is not one of those that were locked."""
NETWORK_DISABLED = re.compile(r"network (was|is) disabled|--offline", re.IGNORECASE)
"""What uv says of something that is not in its cache, with the network switched off."""
