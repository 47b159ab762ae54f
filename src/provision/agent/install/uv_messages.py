"""Patterns of uv's error messages."""

from __future__ import annotations

import re

HASH_MISMATCH = re.compile(r"Hash mismatch|Hash-checking is (enabled|required)")
"""A file is not one of the locked ones."""
NETWORK_DISABLED = re.compile(r"network (connectivity )?(was|is) disabled|--offline", re.IGNORECASE)
"""Something is not in the cache, and the network is switched off."""
