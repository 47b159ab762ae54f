"""A lock in a few lines: environments, torch per target with its reason, changes on images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from provision.lock import Lock, LockedEnvironment, TargetChoice
from provision.sanitize import escape_line
from provision.spelling import pluralize

if TYPE_CHECKING:
    from provision.lock.salvage import RepairSummary

_SHOWN = 8


def render_text(lock: Lock) -> str:
    """Return the lines for a person."""
    return "\n".join(escape_line(line) for line in _lines(lock))


def render_repair(repair: RepairSummary) -> str:
    """Return the lines for a person on the versions of a lock that was repaired."""
    kept = f"{repair.kept} {'version is' if repair.kept == 1 else 'versions are'} kept"
    return "\n".join(escape_line(f"  {line}") for line in (kept, *repair.changed))


def to_json(lock: Lock) -> dict[str, Any]:
    """Return the same as JSON parts: `environments` and `targets`."""
    return {
        "environments": {
            environment.key: _environment(lock, environment) for environment in lock.environments
        },
        "targets": {name: _target(choice) for name, choice in lock.targets.items()},
    }


def _environment(lock: Lock, environment: LockedEnvironment) -> dict[str, Any]:
    return {
        "platform": environment.platform,
        "flavour": environment.flavour,
        "glibc": environment.glibc,
        "driver": environment.driver,
        "digest": environment.digest,
        "packages": len(lock.packages_in(environment)),
    }


def _target(choice: TargetChoice) -> dict[str, Any]:
    document = {"environments": list(choice.environments), "because": choice.reason}
    if choice.runtime is None:
        return document
    return {
        **document,
        "runtime": choice.runtime,
        "changed": dict(choice.changed),
        "restart": list(choice.restart),
        "added": list(choice.added),
        "kept": list(choice.kept),
    }


def _lines(lock: Lock) -> Iterator[str]:
    for name, choice in lock.targets.items():
        counts = [
            f"{key}: "
            + pluralize(sum(key in package.environments for package in lock.packages), "package")
            for key in choice.environments
        ]
        yield f"  {name}  {', '.join(counts)}"
        yield f"    {choice.reason}"
        if choice.runtime is not None:
            yield from _runtime_changes(lock, choice)


def _runtime_changes(lock: Lock, choice: TargetChoice) -> Iterator[str]:
    versions = {
        package.name: package.version
        for package in lock.packages
        if choice.environments[0] in package.environments
    }
    changed = [f"{name} {old} -> {versions[name]}" for name, old in choice.changed.items()]
    counts = f"{len(choice.kept)} kept, {len(changed)} changed, {len(choice.added)} added"
    yield f"    on Colab runtime {choice.runtime}: {counts}"
    for label, items in (("changed", changed), ("added", choice.added)):
        if items:
            more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
            yield f"      {label}: {', '.join(items[:_SHOWN])}{more}"
    restart = f"required for {', '.join(choice.restart)}" if choice.restart else "not required"
    yield f"      kernel restart: {restart}"
