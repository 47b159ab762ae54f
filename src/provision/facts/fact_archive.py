"""Archives of compiled fact tables: zip files and wheels that have compiled.json and on_demand/."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from provision.errors import ProvisionError
from provision.facts.fact_tables import (
    MALFORMED,
    SCHEMA_VERSION,
    CompiledTables,
    FactTables,
    Table,
)
from provision.facts.table_lookup import load_tables_from
from provision.facts.tables_in_use import COMPILED_NAME, INSTALLED_TABLES, LAZY_NAME

MAX_BYTES = 64 * 2**20
"""Bytes of an archive, and of all its tables together. Our choice."""


def read_archive(data: bytes, name: str) -> dict[str, bytes]:
    """Return the tables of an archive by their path, "compiled.json" last.

    They can be in any folder of it: in a wheel of provision, they are in provision/facts.

    Raises:
        ProvisionError: it is damaged, lacks a table, or was written for another version.
    """
    try:
        tables = _extract(data)
        schema = int(json.loads(tables[COMPILED_NAME])["schema"])
    except json.JSONDecodeError:
        raise _damaged_error(name, f"{COMPILED_NAME} is not valid JSON") from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, *MALFORMED) as error:
        raise _damaged_error(name, str(error)) from None
    if schema != SCHEMA_VERSION:
        is_old = schema < SCHEMA_VERSION
        raise ProvisionError(
            f"the facts in {name} are for {'an earlier' if is_old else 'a later'} version of "
            "provision",
            why=f"their schema is {schema}, expected {SCHEMA_VERSION}",
            hint="pin newer facts" if is_old else "update `provision`, or pin older facts",
        )
    missing = [
        f"{LAZY_NAME}/{path.name}"
        for path in sorted((INSTALLED_TABLES / LAZY_NAME).glob("*.json"))
        if f"{LAZY_NAME}/{path.name}" not in tables
    ]
    if missing:
        raise _damaged_error(name, f"it has no {missing[0]}")
    try:
        _build_all(tables)
    except ProvisionError as error:
        raise _damaged_error(name, error.why) from None
    return tables


def _extract(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        compiled = [item for item in names if f"/{item}".endswith(f"/{COMPILED_NAME}")]
        if not compiled:
            raise ValueError(f"{COMPILED_NAME} is missing")
        root = min(compiled, key=lambda item: (item.count("/"), item)).removesuffix(COMPILED_NAME)
        wanted = {
            item.removeprefix(root): item
            for item in names
            if item.startswith(f"{root}{LAZY_NAME}/") and item.endswith(".json")
        }
        if any(path.count("/") > 1 for path in wanted):
            raise ValueError(f"{LAZY_NAME} contains folders, but only files are allowed")
        wanted[COMPILED_NAME] = f"{root}{COMPILED_NAME}"
        if sum(archive.getinfo(item).file_size for item in wanted.values()) > MAX_BYTES:
            raise ValueError(f"its tables are larger than {MAX_BYTES >> 20} MiB")
        return {path: archive.read(item) for path, item in wanted.items()}


def _build_all(tables: Mapping[str, bytes]) -> None:
    """Build every table once, so that damage is found now.

    Raises:
        ProvisionError: a table is damaged.
    """
    facts = FactTables()
    facts.compiled = CompiledTables(Path(COMPILED_NAME), tables[COMPILED_NAME])
    for name, value in vars(FactTables).items():
        if isinstance(value, Table):
            getattr(facts, name)
    load_tables_from(tables)


def _damaged_error(name: str, why: str) -> ProvisionError:
    return ProvisionError(
        f"the facts in {name} cannot be used",
        why=why,
        hint="pin an archive that contains compiled.json and on_demand/, as written by `make "
        "facts`",
    )
