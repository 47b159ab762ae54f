"""The common part of `provision add` and `provision remove`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from provision.cli.app import (
    ALL_TARGETS,
    OFFLINE,
    OUTPUT_FORMAT,
    TARGETS,
    YES,
    spec_or_default,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.commands.package_changes import PackageChanges

APPLY = click.option("--apply", "then_apply", is_flag=True, help="Apply the spec after locking it.")


def package_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments and options of a command that changes packages."""
    for option in (OUTPUT_FORMAT, YES, OFFLINE, ALL_TARGETS, TARGETS, APPLY):
        function = option(function)
    return click.argument("packages", metavar="PACKAGE... [SPEC]", nargs=-1, required=True)(
        function
    )


def change_packages(
    verb: str,
    words: tuple[str, ...],
    *,
    then_apply: bool,
    offline: bool,
    output_format: str,
    **options: Any,
) -> int:
    """Change the packages of a spec, print what changed, and apply it if requested."""
    if not then_apply and (chosen := [name for name, value in options.items() if value]):
        option = {"all_targets": "all", "targets": "target"}.get(chosen[0], chosen[0])
        raise click.UsageError(f"--{option} needs --apply")
    path, packages = split_spec(words)
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands import package_changes as command

    change = command.add_packages if verb == "add" else command.remove_packages
    system = RealSystem(offline=offline)
    with show_progress() as progress:
        result = change(path, packages, system, progress)
    console.print_brief_findings(result.locked.warnings, result.loaded.source)
    if result.locked.unconfirmed_note:
        console.print_note(result.locked.unconfirmed_note)
    if then_apply:
        from provision.cli.apply import apply

        console.print_note(describe_changes(result))
        context = click.get_current_context()
        code: int = context.invoke(
            apply, spec=path, offline=offline, output_format=output_format, **options
        )
        return code
    if output_format == "json":
        console.print_document(**changes_to_json(result))
    else:
        console.print_text(describe_changes(result))
    return 0


def split_spec(words: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    """Return the spec, and the packages; a word that ends as specs do is the spec."""
    specs = [word for word in words if word.endswith((".yaml", ".yml"))]
    packages = tuple(word for word in words if word not in specs)
    if len(specs) > 1:
        raise click.UsageError(
            f"only one spec is allowed, but {specs[0]} and {specs[1]} were given"
        )
    if not packages:
        raise click.UsageError(f"expected a package before {specs[0]}")
    return spec_or_default(Path(specs[0]) if specs else None), packages


def describe_changes(result: PackageChanges) -> str:
    """Return the written files and every package that moved, for people."""
    from provision.views.diff import lock_text

    written = [f"changed {result.loaded.path}"] if result.changed else []
    if result.locked.fresh:
        written.append(f"wrote {result.locked.path}")
    lines = ["; ".join(written) or f"{result.loaded.path} and its lock already contain this"]
    if result.comparison is not None:
        for change in result.comparison.packages:
            before, after, notes = lock_text.describe_package_change(change)
            symbol = lock_text.change_symbol(change.old, change.new)
            versions = " -> ".join(filter(None, (before, after)))
            lines.append(f"  {symbol} {change.name} {versions}" + (f" ({notes})" if notes else ""))
        lines.append(f"  {result.comparison.unchanged} unchanged")
    return "\n".join(lines)


def changes_to_json(result: PackageChanges) -> dict[str, Any]:
    """Return the changes as data."""
    rows = () if result.comparison is None else result.comparison.packages
    return {
        "spec": str(result.loaded.path),
        "lock": str(result.locked.path),
        "spec_changed": result.changed,
        "lock_changed": result.locked.fresh,
        "digest": result.locked.lock.digest,
        "packages": [
            {
                "name": row.name,
                "old": row.old and row.old.version,
                "new": row.new and row.new.version,
                "where": list(row.where) or None,
            }
            for row in rows
        ],
    }
