"""`provision add`: adds packages to a spec and its lock."""

from __future__ import annotations

from typing import Any

import click

from provision.cli.app import examples
from provision.cli.package_output import change_packages, package_options


@click.command(
    epilog=examples(
        "provision add datasets",
        "provision add transformers[torch]==5.13.* peft",
        "provision add datasets specs/quickstart.yaml --apply --yes",
    )
)
@package_options
def add(packages: tuple[str, ...], **options: Any) -> int:
    """Add or change packages in the spec, and update the lock with as few changes as possible.

    PACKAGE is a requirement: a name with extras, version and marker. A package that is already
    listed keeps its version and marker unless you specify new ones; extras are added. The spec and
    its lock are written together, or not at all. An argument that ends in .yaml or .yml is the
    spec.
    """
    return change_packages("add", packages, **options)
