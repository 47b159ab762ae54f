"""Contexts for rules that read `env`, `secrets` or `training`, which a target may set for itself.

Such a rule is run on each target that does, with the merged values. Its findings are then moved
from the spec's fields to those of the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from provision.diagnostics import (
    Diagnostic,
    Edit,
    Insert,
    Location,
    RelatedLocation,
    Replace,
    Route,
    RouteLocation,
)
from provision.kinds.base import TargetModel
from provision.rules.rule import LintContext, SpecText, is_written

_SETTINGS = ("env", "secrets", "training")


@dataclass(frozen=True)
class TargetSettings:
    """The fields of a target that take precedence over the spec's own."""

    name: str
    target: TargetModel

    def move(self, finding: Diagnostic) -> Diagnostic:
        """Return a finding that points at the fields of the target as far as they are written."""
        fix = finding.fix
        if fix is not None:
            fix = fix._replace(edits=tuple(map(self._move_edit, fix.edits)))
        related = (
            RelatedLocation(self._move_location(other.where), other.text)
            for other in finding.related
        )
        return finding._replace(
            where=self._move_location(finding.where), related=tuple(related), fix=fix
        )

    def move_route(self, route: Route) -> Route:
        """Return the route of the target's own field, or the same route if it has none."""
        if route and route[0] in _SETTINGS and is_written(self.target, route):
            return ("targets", self.name, *route)
        return route

    def _move_location(self, where: Location) -> Location:
        if isinstance(where, RouteLocation):
            return where._replace(route=self.move_route(where.route))
        return where

    def _move_edit(self, edit: Edit) -> Edit:
        match edit:
            case Replace():
                return edit._replace(where=self._move_location(edit.where))
            case Insert():
                return edit._replace(route=self.move_route(edit.route))


@dataclass(frozen=True)
class _MovedText:
    """The text of a spec with a target's fields in place of the spec's own."""

    source: SpecText
    settings: TargetSettings

    def text(self, route: Route) -> str | None:
        return self.source.text(self.settings.move_route(route))

    def is_plain(self, route: Route) -> bool:
        return self.source.is_plain(self.settings.move_route(route))


def split_by_settings(
    context: LintContext,
) -> Iterator[tuple[LintContext, TargetSettings | None]]:
    """Yield the context of the targets without own settings, then one for each of the others."""
    targets = context.spec.targets
    shared = {name: target for name, target in targets.items() if not target.changes_settings}
    if len(shared) == len(targets):
        yield context, None
        return
    if shared:
        spec = context.spec.model_copy(update={"targets": shared})
        yield replace(context, spec=spec), None
    for name, target in targets.items():
        if target.changes_settings:
            spec = context.spec.with_settings_of(name).model_copy(
                update={"targets": {name: target}}
            )
            settings = TargetSettings(name, target)
            text = _MovedText(context.source, settings)
            yield replace(context, spec=spec, source=text), settings
