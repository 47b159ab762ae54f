"""lock --check and lock --verify: the lock compared with the spec, and with the indexes."""

from __future__ import annotations

import json
from pathlib import Path

from provision.adapters import RealSystem
from provision.cli import console
from provision.commands.lock_check import list_lock_differences
from provision.commands.shared.spec_paths import lock_path


def lock_check(path: Path, form: str) -> int:
    """Say whether the lock still holds; exit 1 when it does not."""
    moved, lock = list_lock_differences(path, RealSystem()), lock_path(path)
    if form == "json":
        console.print_result(
            json.dumps(
                {"version": 1, "lock": str(lock), "holds": not moved, "moved": list(moved)},
                indent=1,
            )
        )
    elif moved:
        console.print_text(
            "\n".join(
                [
                    f"{lock} does not hold; since it was made these moved:",
                    *(f"  {line}" for line in moved),
                ]
            )
        )
    else:
        console.print_text(f"{lock} holds")
    return 1 if moved else 0


def lock_verify(path: Path, form: str) -> int:
    """Say whether the indexes list every file of the lock with its hash; exit 1 when one differs, 3
    when some could not be compared.
    """
    from provision.commands.lock_verify import verify_lock
    from provision.views import lock_verification

    with console.progress() as (tell, _):
        found = verify_lock(path, RealSystem(), tell)
    if form == "json":
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "lock": str(found.lock),
                    **lock_verification.to_json(found.published, found.sources),
                },
                indent=1,
            )
        )
    else:
        console.print_text(
            lock_verification.render_text(found.published, str(found.lock), found.sources)
        )
    if found.published.mismatches:
        return 1
    return 3 if found.published.unproven else 0
