"""`provision lock`: locks one set of versions for all targets, and checks a lock."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import (
    OFFLINE,
    OPTIONAL_SPEC,
    examples,
    output_format_option,
    spec_or_default,
)

_UPGRADE_ALL = "*"


@click.command(
    epilog=examples(
        "provision lock",
        "provision lock --check",
        "provision lock --verify",
        "provision lock --upgrade specs/quickstart.yaml   # all of it",
        "provision lock --upgrade torch --upgrade numpy",
        "provision lock --diff old.lock",
        "git show main:provision.lock | provision lock --diff - --output-format markdown",
    )
)
@OPTIONAL_SPEC
@click.option(
    "--check",
    is_flag=True,
    help="Check that the lock is up to date, without network access. Exit 1 if it is not.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Check that the indexes list each file in the lock with the same hash. Exit with "
    "code 1 if a hash differs.",
)
@click.option(
    "--upgrade",
    "upgrades",
    is_flag=False,
    flag_value=_UPGRADE_ALL,
    multiple=True,
    metavar="[PACKAGE]",
    help="Upgrade all packages, or only PACKAGE and the packages that must change with it; "
    "repeatable. Use `code` as PACKAGE to update the locked commit of the code.",
)
@click.option(
    "--diff",
    "old",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="OLD",
    help="Show the changes since an earlier lock (- for standard input) and their consequences, "
    "without network access. Exit 0 even if there are changes.",
)
@OFFLINE
@output_format_option(
    "text", "json", "markdown", text="Set the output format; markdown requires --diff."
)
def lock(
    spec: Path | None,
    *,
    check: bool,
    verify: bool,
    upgrades: tuple[str, ...],
    old: Path | None,
    offline: bool,
    output_format: str,
) -> int:
    """Lock one set of versions, with a hash for each file."""
    modes = {
        "--check": check,
        "--verify": verify,
        "--upgrade": bool(upgrades),
        "--diff": old is not None,
    }
    chosen = [option for option, is_chosen in modes.items() if is_chosen]
    if len(chosen) > 1:
        raise click.UsageError(f"{chosen[0]} and {chosen[1]} cannot be combined")
    if verify and offline:
        raise click.UsageError(
            "--verify needs the network, so it cannot be combined with --offline; use --check, "
            "which works offline"
        )
    if output_format == "markdown" and old is None:
        raise click.UsageError("--output-format markdown requires --diff")
    spec, upgrade = _parse_upgrade(spec, upgrades)
    path = spec_or_default(spec)
    if old is not None:
        return _diff(path, old, output_format)
    if check:
        return _check(path, output_format)
    if verify:
        return _verify(path, output_format)
    return _lock(path, upgrade=upgrade, offline=offline, output_format=output_format)


def _parse_upgrade(
    spec: Path | None, values: tuple[str, ...]
) -> tuple[Path | None, bool | frozenset[str]]:
    """Return the spec, and the packages to upgrade: True for all.

    click gives an option with an optional value the next word, so a value that ends as specs do
    is the spec.
    """
    specs = [Path(value) for value in values if value.endswith((".yaml", ".yml"))]
    packages = frozenset(
        value for value in values if value != _UPGRADE_ALL and Path(value) not in specs
    )
    if spec is not None:
        specs.append(spec)
    if len(specs) > 1:
        raise click.UsageError(
            f"only one spec is allowed, but {specs[0]} and {specs[1]} were given; to upgrade a "
            "package, use its name, as in --upgrade torch"
        )
    if "" in packages:
        raise click.UsageError(
            "--upgrade= needs a package; use --upgrade alone to upgrade all packages"
        )
    if packages and len(packages) < len(set(values)):
        raise click.UsageError(
            "--upgrade without a package upgrades all packages, so it cannot be combined with "
            f"--upgrade {min(packages)}"
        )
    return next(iter(specs), None), packages or bool(values)


def _lock(path: Path, *, upgrade: bool | frozenset[str], offline: bool, output_format: str) -> int:
    """Make or renew the lock of a spec; `upgrade` chooses new versions."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.lock import ensure_lock, write_lock
    from provision.commands.shared.load import load_spec
    from provision.views import lock as view

    system = RealSystem(offline=offline)
    loaded = load_spec(path, system)
    with show_progress() as progress:
        locked = ensure_lock(loaded, system, progress, upgrade=upgrade, repair=True)
        if locked.fresh:
            write_lock(locked, system, progress)
    console.print_brief_findings(locked.warnings, loaded.source)
    if locked.unconfirmed_note:
        console.print_note(locked.unconfirmed_note)
    if output_format == "json":
        repaired = {"repaired": locked.repair._asdict()} if locked.repair is not None else {}
        console.print_document(
            lock=str(loaded.lock_path),
            changed=locked.fresh,
            because=locked.reason,
            digest=locked.lock.digest,
            **repaired,
            **view.to_json(locked.lock),
            unconfirmed=list(dict.fromkeys(package.name for package in locked.unconfirmed)),
        )
        return 0
    if locked.repair is not None:
        console.print_text(f"repaired: {locked.reason}\n{view.render_repair(locked.repair)}")
    done = "wrote" if locked.fresh else "kept"
    console.print_text(f"{done} {loaded.lock_path}\n{view.render_text(locked.lock)}")
    return 0


def _check(path: Path, output_format: str) -> int:
    """Print what changed in the spec since its lock was made; exit 1 if anything did."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.lock_check import list_lock_differences
    from provision.commands.shared.load import lock_path

    differences, lock = list_lock_differences(path, RealSystem()), lock_path(path)
    if output_format == "json":
        console.print_document(lock=str(lock), holds=not differences, moved=differences)
    elif differences:
        lines = [f"{lock} is stale; changes since it was created:"]
        lines += [f"  {difference}" for difference in differences]
        console.print_text("\n".join(lines))
    else:
        console.print_text(f"{lock} is up to date")
    return 1 if differences else 0


def _verify(path: Path, output_format: str) -> int:
    """Compare a lock with the indexes; exit 1 for a difference, 3 for what cannot be compared."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.lock_verify import verify_lock
    from provision.views import lock_verification as view

    with show_progress() as progress:
        result = verify_lock(path, RealSystem(), progress)
    published, lock = result.published, str(result.lock)
    if output_format == "json":
        console.print_document(lock=lock, **view.to_json(published, result.sources))
    else:
        console.print_text(view.render_text(published, lock, result.sources))
    if published.mismatches:
        return 1
    return 3 if published.unproven else 0


def _diff(path: Path, old: Path, output_format: str) -> int:
    """Print the differences between the lock at `old` (-: standard input) and the spec's lock."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.lock_diff import read_new_lock, read_old_lock, review_lock_changes
    from provision.commands.shared.load import load_spec
    from provision.commands.shared.lock_file import MAX_LOCK_BYTES
    from provision.lock.inputs import list_changed_inputs
    from provision.views.diff import lock_markdown, lock_text

    system = RealSystem()
    loaded = load_spec(path, system)
    if str(old) == "-":
        hint = "pipe the older lock into the command, or name a file"
        content = console.read_standard_input(MAX_LOCK_BYTES, hint=hint)
        name, before = read_old_lock(None, content, system)
    else:
        name, before = read_old_lock(old, b"", system)
    after = read_new_lock(loaded, system)
    if changes := list_changed_inputs(loaded.spec, after):
        lines = [f"note: {loaded.lock_path} is stale; changes since it was created:"]
        lines += [f"  {change}" for change in changes]
        console.print_note("\n".join(lines))
    review = review_lock_changes(loaded, before, after, name)
    if output_format == "json":
        console.print_json(lock_text.to_json(review, loaded.source))
    elif output_format == "markdown":
        console.print_result(lock_markdown.render_comment(review, loaded.source))
    else:
        console.print_rendered(lock_text.render_text, review, loaded.source)
    return 0
