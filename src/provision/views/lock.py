"""A lock in a few lines: environments, torch per target with its reason, changes on images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from provision.lock import Lock, LockedEnvironment, TargetChoice
from provision.sanitize import escape_line

if TYPE_CHECKING:
    from provision.lock.salvage import RepairSummary

_SHOWN = 8


def render_text(lock: Lock) -> str:
    """Return the lines for a person."""
    return "\n".join(escape_line(line) for line in _lines(lock))


def render_repair(made: RepairSummary) -> str:
    """Return the lines for a person on the versions of a lock that was repaired."""
    lines = [
        f"  {made.kept} {'version is' if made.kept == 1 else 'versions are'} kept",
        *(f"  {line}" for line in made.changed),
    ]
    return "\n".join(escape_line(line) for line in lines)


def to_json(lock: Lock) -> dict[str, Any]:
    """Return the same as JSON parts: `environments` and `targets`."""
    return {
        "environments": {
            environment.key: _environment(lock, environment) for environment in lock.environments
        },
        "targets": {name: _target(chosen) for name, chosen in lock.targets.items()},
    }


def _environment(lock: Lock, environment: LockedEnvironment) -> dict[str, Any]:
    told = {
        part: getattr(environment, part)
        for part in ("platform", "flavour", "glibc", "driver", "digest")
    }
    return {**told, "packages": len(lock.packages_in(environment))}


def _target(chosen: TargetChoice) -> dict[str, Any]:
    told: dict[str, Any] = {"environments": list(chosen.environments), "because": chosen.reason}
    if chosen.runtime is None:
        return told
    lists = {part: list(getattr(chosen, part)) for part in ("restart", "added", "kept")}
    return {**told, "runtime": chosen.runtime, "changed": dict(chosen.changed), **lists}


def _lines(lock: Lock) -> Iterator[str]:
    for name, chosen in lock.targets.items():
        counts = [
            f"{key}: {sum(key in package.environments for package in lock.packages)} packages"
            for key in chosen.environments
        ]
        yield f"  {name}  {', '.join(counts)}"
        yield f"    {chosen.reason}"
        if chosen.runtime is not None:
            yield from _runtime_changes(lock, chosen)


def _runtime_changes(lock: Lock, chosen: TargetChoice) -> Iterator[str]:
    versions = {
        package.name: package.version
        for package in lock.packages
        if chosen.environments[0] in package.environments
    }
    changed = [f"{name} {old} -> {versions[name]}" for name, old in chosen.changed.items()]
    (
        yield f"    on Colab runtime {chosen.runtime}: {len(chosen.kept)} kept, {len(changed)} "
        f"changed, {len(chosen.added)} added"
    )
    if changed:
        yield f"      changed: {_shortened(changed)}"
    if chosen.added:
        yield f"      added: {_shortened(list(chosen.added))}"
    (
        yield "      restart of the kernel: "
        f"{'yes, for ' + ', '.join(chosen.restart) if chosen.restart else 'no'}"
    )


def _shortened(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
