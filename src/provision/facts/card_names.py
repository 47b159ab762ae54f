"""Names of cards as nvidia-smi, lspci and clouds print them, reduced to the words that identify."""

from __future__ import annotations

import re

_NOISE = re.compile(
    r"nvidia|corporation|tesla|geforce|blackwell|generation|server|workstation|edition|gpu|"
    r"sxm\d?|pcie|hbm\d[e]?"
)
"""Makers, product lines, form factors and types of memory: no two cards differ in them alone,
except H100 and H100-PCIe, whose names are aliases.
"""


def reduce_name(name: str) -> str:
    """Return the words of a name that identify a card, in lower case and joined by hyphens.

    "NVIDIA A100-SXM4-80GB" and lspci's "GA100 [A100 SXM4 80GB]" become "a100-80gb".
    """
    marketing = re.search(r"\[([^]]+)\]", name)
    words = re.findall(r"[a-z0-9]+", (marketing[1] if marketing else name).casefold())
    kept = [re.sub(r"^(\d+)g$", r"\1gb", word) for word in words if not _NOISE.fullmatch(word)]
    return "-".join(kept)
