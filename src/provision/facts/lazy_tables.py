"""The large tables that few questions need, each read when it is first asked for: prices, zones,
package sets, constraints, symptoms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from provision.errors import ProvisionError
from provision.facts.schema_packages import Constraint, Symptom
from provision.facts.schema_platforms import CardZones, MachinePrice
from provision.facts.schema_torch import Evidence

LAZY_TABLES_FOLDER = Path(__file__).with_name("on_demand")
SCHEMA_VERSION = 1


@lru_cache(maxsize=8)
def load_prices(folder: Path = LAZY_TABLES_FOLDER) -> tuple[MachinePrice, ...]:
    """Return what machine types and single GPUs cost an hour, by region. Raises ProvisionError when
    the table is damaged.
    """
    return tuple(MachinePrice(**row) for row in _rows("prices", folder))


@lru_cache(maxsize=8)
def load_zones(folder: Path = LAZY_TABLES_FOLDER) -> tuple[CardZones, ...]:
    """Return where Google Cloud has which card. Raises ProvisionError when the table is damaged."""
    return tuple(CardZones(**row) for row in _rows("zones", folder))


@lru_cache(maxsize=8)
def load_constraints(folder: Path = LAZY_TABLES_FOLDER) -> Mapping[str, Constraint]:
    """Return what packages need, in words, by key. Raises ProvisionError when the table is damaged."""  # noqa: E501
    return {row["key"]: Constraint(**row) for row in _rows("constraints", folder)}


@lru_cache(maxsize=8)
def load_symptoms(folder: Path = LAZY_TABLES_FOLDER) -> tuple[Symptom, ...]:
    """Return the texts of errors with causes and cures. Raises ProvisionError when the table is
    damaged.
    """
    return tuple(Symptom(**row) for row in _rows("symptoms", folder))


@lru_cache(maxsize=8)
def load_colab_packages(folder: Path = LAZY_TABLES_FOLDER) -> Mapping[str, Mapping[str, str]]:
    """Return the packages of each Colab runtime, by "2026.07" or "2026.07-cpu": canonical name to
    version, "?" where that is unknown.

    Raises ProvisionError when the table is damaged.
    """
    path = folder / "colab_packages.json"
    table = read_compiled(path)
    try:
        columns, rows = table["columns"], [tuple(row) for row in table["rows"]]
        return {
            runtime: {row[0]: row[place] for row in rows if row[place]}
            for place, runtime in enumerate(columns)
            if place
        }
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise damaged_tables_error(path, error) from None


def read_compiled(path: Path) -> dict[str, Any]:
    """Return a compiled file as it is. Raises ProvisionError when it is missing, no JSON object, or
    of a newer schema.
    """
    try:
        tables = json.loads(path.read_bytes())
        newer = tables["schema"] > SCHEMA_VERSION
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged_tables_error(path, error) from None
    if newer:
        hint = "update provision, or reinstall it so that program and tables are of one version"
        raise ProvisionError(
            "the fact tables of this installation cannot be read",
            why=f"{path.name} was written for a later version of provision",
            hint=hint,
        )
    return dict(tables)


def damaged_tables_error(path: Path, error: Exception) -> ProvisionError:
    """Return what to say of a compiled file that cannot be used."""
    return ProvisionError(
        "the fact tables of this installation cannot be read",
        why=f"{path.name}: {type(error).__name__}",
        hint="reinstall provision",
    )


def expand_rows(table: dict[str, Any], name: str = "rows") -> list[dict[str, Any]]:
    """Return the rows of a table as mappings, whether each is written as one or stands under
    `columns`; `by` brings the evidence it names.
    """
    if "columns" not in table:
        return list(table[name])
    named = [dict(zip(table["columns"], row, strict=True)) for row in table[name]]
    return [
        {
            **{key: value for key, value in row.items() if key != "by"},
            **table.get("by", {}).get(row.get("by"), {}),
        }
        for row in named
    ]


def to_row_values(
    row: dict[str, Any], table: dict[str, Any], shared: dict[tuple[str, str, str], Evidence]
) -> dict[str, Any]:
    """Return a row's values with lists as tuples and its evidence, the table's where it has none of
    its own; `shared` keeps one object for each.
    """
    values: dict[str, Any] = {
        key: tuple(value) if type(value) is list else value for key, value in row.items()
    }
    mark: tuple[str, str, str] = (
        values.pop("source", table["source"]),
        values.pop("as_of", table["as_of"]),
        values.pop("confidence", table["confidence"]),
    )
    evidence = shared.get(mark)
    if evidence is None:
        evidence = shared[mark] = Evidence(*mark)
    values["evidence"] = evidence
    return values


def _rows(name: str, folder: Path) -> list[dict[str, Any]]:
    path = folder / f"{name}.json"
    table = read_compiled(path)
    shared: dict[tuple[str, str, str], Evidence] = {}
    try:
        return [to_row_values(row, table, shared) for row in expand_rows(table)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged_tables_error(path, error) from None
