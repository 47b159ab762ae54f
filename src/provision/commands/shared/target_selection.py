"""The targets that a command selects from a spec."""

from __future__ import annotations

from provision.commands.shared.load import LoadedSpec
from provision.errors import UsageError
from provision.spelling import did_you_mean


def select_targets(
    loaded: LoadedSpec, names: tuple[str, ...], *, everything: bool
) -> tuple[str, ...]:
    """Return the named targets, the single one, or all with `everything`.

    Raises:
        UsageError: an unknown name, or none of several targets is named.
    """
    known = tuple(loaded.spec.targets)
    names = tuple(map(loaded.target_name, names))
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = f"{did_you_mean(unknown[0], known)} its targets: {', '.join(known)}".lstrip()
        raise UsageError(f"the spec has no target `{unknown[0]}`", hint=hint)
    if names:
        return tuple(dict.fromkeys(names))
    if len(known) == 1 or everything:
        return known
    raise UsageError(
        "the spec has several targets",
        why=list_targets(loaded),
        hint="select targets with --target, or all targets with --all",
    )


def select_target(loaded: LoadedSpec, name: str | None) -> str:
    """Return the named target, or the only one; raise UsageError for an unknown or missing name."""
    if name is None and len(loaded.spec.targets) > 1:
        raise UsageError(
            "the spec has several targets",
            why=list_targets(loaded),
            hint="select one with --target",
        )
    return select_targets(loaded, (name,) if name else (), everything=False)[0]


def list_targets(loaded: LoadedSpec) -> str:
    """Return the targets of a spec with their kinds, for messages."""
    return ", ".join(f"{name} ({target.kind})" for name, target in loaded.spec.targets.items())
