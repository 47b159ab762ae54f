"""`provision remove`: removes packages from a spec and its lock."""

from __future__ import annotations

from typing import Any

import click

from provision.cli.app import examples
from provision.cli.package_output import change_packages, package_options


@click.command(
    epilog=examples(
        "provision remove datasets",
        "provision remove datasets peft specs/quickstart.yaml --apply --yes",
    )
)
@package_options
def remove(packages: tuple[str, ...], **options: Any) -> int:
    """Remove packages from the spec and the lock, with the dependencies that only they need.

    The spec and its lock are written together, or not at all. An argument that ends in .yaml or
    .yml is the spec.
    """
    return change_packages("remove", packages, **options)
