"""Notebooks and specs for the examples of rules about notebooks."""

from __future__ import annotations

from provision.rules.rule import Example, ResolvedSet

LOCAL_SPEC = 'gpu: L4\npython: "3.12"\npackages: [torch, "transformers[torch]"]\n'
LOCKED = ResolvedSet(
    {"torch": "2.11.0", "transformers": "5.0.0", "accelerate": "1.15.0", "numpy": "2.3.0"},
    "3.12",
    "cu128",
)
"""What `LOCAL_SPEC` was locked to."""


def notebook_example(
    marked: str,
    colab: str = "",
    spec: str = "",
    locked: ResolvedSet | None = None,
    other_ids: tuple[str, ...] = (),
) -> Example:
    """Return a notebook that marks the text that the finding points at: "!cd «/data»".

    Args:
        marked: the cells, separated by lines with "# %%".
        colab: the card of the Colab runtime that saved it, "none" for none, "" for another place.
        spec: the spec that the notebook is checked with; "" for none.
        locked: the set that the spec is locked to.
        other_ids: other rules that also report a finding.
    """
    before, _, rest = marked.partition("«")
    at, _, after = rest.partition("»")
    return Example(spec, at, locked, other_ids, before + at + after, colab)
