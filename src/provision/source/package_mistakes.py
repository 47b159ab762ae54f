"""Findings about packages in the form of other tools: mappings of a name to a version."""

from __future__ import annotations

import re

from provision.diagnostics import Diagnostic, Route, RouteLocation
from provision.source.document import Source
from provision.source.findings import make_finding
from provision.source.nodes import LocatedValue, Mapping, Scalar
from provision.source.vocabulary import KEY_EXAMPLES, format_route
from provision.source.yaml_scalars import quote_scalar
from provision.spec import Package

_ROUTE: Route = ("packages",)
_MAX_LISTED = 5


def find_package_mistakes(source: Source) -> tuple[list[Diagnostic], frozenset[Route]]:
    """Return findings for `packages: {torch: "2.13"}` and `- torch: "2.13"`, and their routes.

    The routes need no other finding.
    """
    packages = source.tree.find(_ROUTE) if source.tree else None
    if packages is None:
        return [], frozenset()
    if isinstance(packages.node, Mapping):
        return [_mapping_finding(packages)], frozenset((_ROUTE,))
    findings: dict[Route, Diagnostic] = {}
    for index, item in packages.children.items():
        if not isinstance(item.node, Mapping) or len(item.children) != 1:
            continue
        ((name, version),) = item.children.items()
        if name in Package.model_fields or not isinstance(version.node, Scalar):
            continue
        route: Route = (*_ROUTE, index)
        message = "is a mapping of a name to a version; expected a single string"
        findings[route] = make_finding(
            "wrong-type",
            f"{format_route(route)} {message}",
            RouteLocation(route),
            hint=f"write {quote_scalar(_to_requirement(str(name), version))}",
        )
    return list(findings.values()), frozenset(findings)


def _mapping_finding(packages: LocatedValue) -> Diagnostic:
    requirements = [
        quote_scalar(_to_requirement(str(name), item))
        for name, item in list(packages.children.items())[:_MAX_LISTED]
        if isinstance(item.node, Scalar)
    ]
    hint = f"for example: {KEY_EXAMPLES['packages']}"
    if requirements:
        more = ", ..." if len(packages.children) > _MAX_LISTED else ""
        hint = f"write: packages: [{', '.join(requirements)}{more}]"
    message = "packages: expected a list of requirements, got a mapping"
    return make_finding("wrong-type", message, RouteLocation(_ROUTE), hint=hint)


def _to_requirement(name: str, version: LocatedValue) -> str:
    text = ""
    if isinstance(version.node, Scalar) and version.node.resolved is not None:
        text = version.node.value
    if text in ("", "*", "latest", "any"):
        return name
    return f"{name}=={text}" if re.match(r"[0-9]", text) else f"{name}{text}"
