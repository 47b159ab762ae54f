"""Packages written the way other tools write them: as mappings of name to version."""

from __future__ import annotations

import re

from provision.diagnostics import Diagnostic, Place, Route
from provision.source.document import Source
from provision.source.findings import finding
from provision.source.nodes import Mapping, Scalar
from provision.source.placing import Placed
from provision.source.quoting import quoted
from provision.source.wording import LOOKS, dotted
from provision.spec import Package

_ROUTE: Route = ("packages",)
_MOST = 5


def mistaken(source: Source) -> tuple[list[Diagnostic], frozenset[Route]]:
    """Return a finding for `packages: {torch: "2.13"}` and for each `- torch: "2.13"`, and the routes that need no further word."""
    packages = None if source.tree is None else source.tree.find(_ROUTE)
    if packages is None:
        return [], frozenset()
    if isinstance(packages.node, Mapping):
        listed = [quoted(_requirement(str(name), item)) for name, item in list(packages.children.items())[:_MOST] if isinstance(item.node, Scalar)]
        more = ", ..." if len(packages.children) > _MOST else ""
        hint = f"write: packages: [{', '.join(listed)}{more}]" if listed else f"write it as in: {LOOKS['packages']}"
        return [finding("wrong-type", "packages is a mapping; a list of requirements is wanted", Place(_ROUTE), hint=hint)], frozenset((_ROUTE,))
    found: list[Diagnostic] = []
    settled: set[Route] = set()
    for index, item in packages.children.items():
        names = list(item.children)
        if isinstance(item.node, Mapping) and len(names) == 1 and names[0] not in Package.model_fields and isinstance(item.children[names[0]].node, Scalar):
            route: Route = (*_ROUTE, index)
            wanted = quoted(_requirement(str(names[0]), item.children[names[0]]))
            found.append(
                finding("wrong-type", f"{dotted(route)} is a mapping of a name to a version; a requirement is one text", Place(route), hint=f"write {wanted}")
            )
            settled.add(route)
    return found, frozenset(settled)


def _requirement(name: str, version: Placed) -> str:
    text = version.node.value if isinstance(version.node, Scalar) and version.node.resolved is not None else ""
    if text in ("", "*", "latest", "any"):
        return name
    return f"{name}=={text}" if re.match(r"[0-9]", text) else f"{name}{text}"
