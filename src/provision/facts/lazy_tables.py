"""Large tables that few commands need; each function reads its table at the first call.

Without `folder` it is that of the tables in use. The functions raise ProvisionError if their table
is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from provision.facts.fact_tables import CompiledTables
from provision.facts.schema_packages import CondaName, KnownModel, Symptom
from provision.facts.schema_platforms import CardZones, MachinePrice
from provision.facts.schema_torch import JaxPlugin, TensorFlowRelease
from provision.facts.tables_in_use import INSTALLED_TABLES, LAZY_NAME, lazy_folder

LAZY_TABLES_FOLDER = INSTALLED_TABLES / LAZY_NAME
_Row = TypeVar("_Row")


def load_prices(folder: Path | None = None) -> tuple[MachinePrice, ...]:
    """Return the hourly prices of machine types and single GPUs, by region."""
    return _load_rows("prices", MachinePrice, folder)


def load_prices_by_item(
    folder: Path | None = None,
) -> Mapping[str, tuple[tuple[int, MachinePrice], ...]]:
    """Return the prices of each machine type or single GPU, with their numbers in the table."""
    return _group_prices(folder or lazy_folder())


def load_zones(folder: Path | None = None) -> tuple[CardZones, ...]:
    """Return the zones of Google Cloud that have each card."""
    return _load_rows("zones", CardZones, folder)


def load_symptoms(folder: Path | None = None) -> tuple[Symptom, ...]:
    """Return the patterns of error messages with their causes and fixes."""
    return _load_rows("symptoms", Symptom, folder)


def load_conda_names(folder: Path | None = None) -> Mapping[str, CondaName]:
    """Return the packages of conda with another name on the package index, by their name."""
    return {row.name: row for row in _load_rows("conda_names", CondaName, folder)}


def load_models(folder: Path | None = None) -> Mapping[str, KnownModel]:
    """Return well-known models by their id in lower case."""
    return _models_by_id(folder or lazy_folder())


def load_tensorflow(folder: Path | None = None) -> tuple[TensorFlowRelease, ...]:
    """Return the TensorFlow releases, oldest first."""
    return _load_rows("tensorflow", TensorFlowRelease.from_columns, folder)


def load_jax(folder: Path | None = None) -> tuple[JaxPlugin, ...]:
    """Return the releases of jax's CUDA plugins, oldest first."""
    return _load_rows("jax", JaxPlugin.from_columns, folder)


def load_colab_packages(folder: Path | None = None) -> Mapping[str, Mapping[str, str]]:
    """Return the packages of each Colab runtime ("2026.07", "2026.07-cpu").

    The packages map a canonical name to a version, or to "?" if the version is unknown.
    """
    return _load_colab_packages(folder or lazy_folder())


@lru_cache(maxsize=8)
def _load_colab_packages(folder: Path) -> Mapping[str, Mapping[str, str]]:
    return CompiledTables(folder / "colab_packages.json").build(_colab_packages)


def _colab_packages(compiled: CompiledTables) -> Mapping[str, Mapping[str, str]]:
    """Turn rows of packages, with a column for each runtime, into packages by runtime."""
    _, *runtimes = compiled.value("columns")
    packages: dict[str, dict[str, str]] = {runtime: {} for runtime in runtimes}
    for name, *versions in compiled.value("rows"):
        for runtime, version in zip(runtimes, versions, strict=True):
            if version:
                packages[runtime][name] = version
    return packages


def _load_rows(table: str, row_type: Callable[..., _Row], folder: Path | None) -> tuple[_Row, ...]:
    return _load_rows_of(table, row_type, folder or lazy_folder())


@lru_cache(maxsize=8)
def _load_rows_of(table: str, row_type: Callable[..., _Row], folder: Path) -> tuple[_Row, ...]:
    compiled = CompiledTables(folder / f"{table}.json")
    return compiled.build(lambda tables: tables.rows("", row_type))


@lru_cache(maxsize=8)
def _models_by_id(folder: Path) -> Mapping[str, KnownModel]:
    return {row.id.lower(): row for row in _load_rows("models", KnownModel, folder)}


@lru_cache(maxsize=8)
def _group_prices(folder: Path) -> Mapping[str, tuple[tuple[int, MachinePrice], ...]]:
    prices: dict[str, list[tuple[int, MachinePrice]]] = {}
    for number, price in enumerate(load_prices(folder)):
        prices.setdefault(price.item, []).append((number, price))
    return {item: tuple(rows) for item, rows in prices.items()}
