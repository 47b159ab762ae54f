"""Packages written the way other tools write them: as mappings of name to version."""

from __future__ import annotations

import re

from provision.diagnostics import Diagnostic, Route, RouteLocation
from provision.source.document import Source
from provision.source.findings import make_finding
from provision.source.nodes import Mapping, Scalar
from provision.source.value_tree import LocatedValue
from provision.source.vocabulary import KEY_EXAMPLES, format_route
from provision.source.yaml_scalars import quote_scalar
from provision.spec import Package

_ROUTE: Route = ("packages",)
_MAX_LISTED = 5


def find_package_mistakes(source: Source) -> tuple[list[Diagnostic], frozenset[Route]]:
    """Return a finding for `packages: {torch: "2.13"}` and for each `- torch: "2.13"`, and the
    routes that need no further word.
    """
    packages = None if source.tree is None else source.tree.find(_ROUTE)
    if packages is None:
        return [], frozenset()
    if isinstance(packages.node, Mapping):
        listed = [
            quote_scalar(_requirement(str(name), item))
            for name, item in list(packages.children.items())[:_MAX_LISTED]
            if isinstance(item.node, Scalar)
        ]
        more = ", ..." if len(packages.children) > _MAX_LISTED else ""
        hint = (
            f"write: packages: [{', '.join(listed)}{more}]"
            if listed
            else f"write it as in: {KEY_EXAMPLES['packages']}"
        )
        return [
            make_finding(
                "wrong-type",
                "packages is a mapping; a list of requirements is wanted",
                RouteLocation(_ROUTE),
                hint=hint,
            )
        ], frozenset((_ROUTE,))
    found: list[Diagnostic] = []
    settled: set[Route] = set()
    for index, item in packages.children.items():
        names = list(item.children)
        if (
            isinstance(item.node, Mapping)
            and len(names) == 1
            and names[0] not in Package.model_fields
            and isinstance(item.children[names[0]].node, Scalar)
        ):
            route: Route = (*_ROUTE, index)
            wanted = quote_scalar(_requirement(str(names[0]), item.children[names[0]]))
            found.append(
                make_finding(
                    "wrong-type",
                    f"{format_route(route)} is a mapping of a name to a version; a "
                    "requirement is one text",
                    RouteLocation(route),
                    hint=f"write {wanted}",
                )
            )
            settled.add(route)
    return found, frozenset(settled)


def _requirement(name: str, version: LocatedValue) -> str:
    text = (
        version.node.value
        if isinstance(version.node, Scalar) and version.node.resolved is not None
        else ""
    )
    if text in ("", "*", "latest", "any"):
        return name
    return f"{name}=={text}" if re.match(r"[0-9]", text) else f"{name}{text}"
