"""Selects the facts that a project pins in its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.configuration_file import find_configuration
from provision.errors import UsageError
from provision.facts import Facts, load_facts
from provision.facts.tables_in_use import COMPILED_NAME, INSTALLED_TABLES, tables_in_use

if TYPE_CHECKING:
    from provision.effects.system import Reader


def select_facts(path: Path, reader: Reader, configured_by: Reader | None = None) -> Facts:
    """Use the facts that the project of a file pins from here on, and return them.

    Args:
        path: a spec or notebook, which need not exist.
        reader: finds the tables that were fetched.
        configured_by: reads the configuration, perhaps from another revision; `reader` if None.

    Raises:
        UsageError: the configuration is not valid, or the facts were not fetched.
    """
    pin = find_configuration(path, configured_by or reader).facts
    if pin is None:
        tables_in_use.set(INSTALLED_TABLES)
        return load_facts()
    folder = reader.facts_folder(pin.sha256)
    if not reader.exists(folder / COMPILED_NAME):
        raise UsageError(
            f"{pin.position}: the facts {pin.sha256[:12]} are not on this machine",
            why=f"only `provision facts fetch` fetches them from {pin.label}",
            hint="run `provision facts fetch`",
        )
    tables_in_use.set(folder)
    return load_facts()
