"""Each check of the fact tables notices damage: a table is changed in one place, and the check that
must see it fails.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import InvalidSpecifier
from packaging.version import InvalidVersion

from provision.facts import COMPILED_TABLES, load_facts
from provision.facts.lazy_tables import LAZY_TABLES_FOLDER
from tests.facts import test_references as references
from tests.facts import test_tables as tables

FOLDER = COMPILED_TABLES.parent / "tables"
CASES: list[tuple[Callable[..., None], str, str, str]] = [
    # what one table says of another
    (references.test_every_cuda_build_of_torch_has_its_code_listed, "torch", "cu132: high, cu134: medium}", "cu132: high, cu134: medium, cu999: high}"),
    (references.test_every_cuda_build_of_torch_has_its_code_listed, "builds", 'sm: "3.7 5.0', 'sm: "3.6 5.0'),
    (references.test_every_list_of_code_belongs_to_a_build_of_torch, "builds", 'release: "1.12.0", flavour: cu102', 'release: "1.12.9", flavour: cu102'),
    (references.test_every_list_of_code_belongs_to_a_build_of_torch, "builds", "flavour: cu102", "flavour: cu999"),
    (references.test_every_list_of_code_belongs_to_a_build_of_torch, "builds", 'ptx: "12.0"', 'ptx: "12.1"'),
    (references.test_code_is_within_what_the_toolkit_makes, "builds", 'cu132, platform: linux-x86_64, sm: "7.5', 'cu132, platform: linux-x86_64, sm: "7.0 7.5'),
    (references.test_toolkits_stand_in_order_and_there_is_no_12_7, "cuda", 'cuda: "12.6"', 'cuda: "12.7"'),
    (references.test_toolkits_stand_in_order_and_there_is_no_12_7, "cuda", 'driver_first: "580.65.06"', 'driver_first: "575.65.06"'),
    (references.test_driver_branches_drop_generations_that_cards_have, "cuda", "[Maxwell, Pascal, Volta]", "[Maxwell, Pascal, Wolta]"),
    (references.test_driver_branches_drop_generations_that_cards_have, "cuda", 'branch: "470"', 'branch: "670"'),
    (references.test_cards_have_a_capability_of_their_generation, "cuda", 'cc: "8.9", arch: Ada', 'cc: "8.9", arch: Hopper'),
    (references.test_a_peak_is_given_only_where_the_hardware_has_the_format, "cuda", "bf16, fp8]", "bf16]"),
    (references.test_machines_and_attachments_name_cards, "machines", "card: L4", "card: L5"),
    (references.test_zones_name_cards_and_lie_in_their_region, "parts/zones.csv", "us-central1-a", "us-east1-a"),
    (references.test_prices_name_cards_and_machines_and_spot_is_no_dearer, "parts/prices.csv", "3.6734", "0.0001"),
    (references.test_prices_name_cards_and_machines_and_spot_is_no_dearer, "parts/prices.csv", "\ng2-standard-4,", "\ng9-standard-4,"),
    (references.test_images_and_runtimes_run_systems_that_are_known, "images", "os: Debian 12", "os: Debian 99"),
    (references.test_images_and_runtimes_run_systems_that_are_known, "images", 'cuda: "13.0"', 'cuda: "13.9"'),
    (references.test_images_and_runtimes_run_systems_that_are_known, "colab", "flavour: cu124", "flavour: cu125"),
    (references.test_images_carry_releases_of_torch_that_are_known, "images", 'torch: "2.12.1"', 'torch: "2.12.9"'),
    (references.test_package_sets_agree_with_the_runtimes, "colab", 'transformers: "4.53.2"', 'transformers: "4.53.3"'),
    (references.test_package_sets_agree_with_the_runtimes, "parts/colab_packages.csv", "\nnumpy,", "\nNumPy,"),
    (references.test_shapes_name_cards_that_colab_offers, "colab", "card: T4", "card: T5"),
    (references.test_runs_and_extensions_name_known_packages, "packages", "package: peft", "package: pfet"),
    (references.test_bitsandbytes_binaries_are_for_cuda_versions_that_exist, "cuda", 'cuda: "12.6"', 'cuda: "12.66"'),
    (references.test_wheels_for_one_cuda_major_stand_in_order_and_for_majors_that_exist, "cuda_wheels", 'cuda_major: "13"', 'cuda_major: "31"'),
    (references.test_wheels_for_one_cuda_major_stand_in_order_and_for_majors_that_exist, "cuda_wheels", 'last: "0.19.1"', 'last: "0.20.1"'),
    (references.test_wheels_for_one_cuda_major_stand_in_order_and_for_majors_that_exist, "cuda_wheels", 'last: "0.33.0", cuda', 'last: "0.32.0", cuda'),
    (references.test_capability_floors_are_capabilities, "extensions", 'cc_min: "8.0"', 'cc_min: "8.1"'),
    (references.test_symptoms_and_constraints_are_whole, "parts/constraints.yaml", "severity: error", "severity: eror"),
    # versions, bounds, days
    (references.test_every_version_parses, "torch", 'cudnn: "8.5.0.96"', 'cudnn: "8.5.0.96-x!"'),
    (references.test_every_version_parses, "torch", 'glibc: "2.17"', 'glibc: "2,17"'),
    (references.test_every_version_parses, "torch", 'triton: "~=3.9.0"', 'triton: "~=3"'),
    (references.test_every_version_parses, "transformers", 'accelerate: "0.19.0"', 'accelerate: "0.19.zero"'),
    (references.test_every_version_parses, "cuda", 'driver_bundled: "580.95.05"', 'driver_bundled: "R580"'),
    (references.test_every_version_parses, "images", 'driver: "580.65.06"', 'driver: "five"'),
    (references.test_runs_of_a_package_stand_in_order_and_their_bounds_parse, "packages", 'numpy: ">=1.17"', 'numpy: "=>1.17"'),
    (references.test_runs_of_a_package_stand_in_order_and_their_bounds_parse, "packages", 'first: "0.19.0", last: "0.20.3"', 'first: "0.99.0", last: "0.20.3"'),
    (references.test_wheels_of_a_package_stand_in_order_and_for_known_pythons, "wheel_pythons", 'last: "1.24.4"', 'last: "1.25.4"'),
    (references.test_days_and_months_are_such, "images", 'end_of_support: "2028-03"', 'end_of_support: "2028-13"'),
    (references.test_days_and_months_are_such, "torch", 'released: "2026-10-28"', 'released: "2026-10-32"'),
    (tables.test_versions_parse_and_stand_in_order, "torch", 'release: "2.13.0"', 'release: "2.3.9"'),
    (tables.test_versions_parse_and_stand_in_order, "torch", "default: cu132", "default: cu126"),
    (tables.test_versions_parse_and_stand_in_order, "transformers", '"4.57.6"', '"9.57.6"'),
    (tables.test_floors_never_fall, "transformers", 'accelerate: "0.20.2"', 'accelerate: "9.20.2"'),
    (tables.test_no_two_cards_answer_to_one_name, "gpus", "name: L4", "name: L40S"),
    (tables.test_names_are_canonical_and_lists_apart, "torch", "family: [torch,", "family: [Torch,"),
    (tables.test_hashes_are_hashes, "wheels", "6746dbcb", "6746dbc!"),
    (tables.test_rows_are_whole, "torch", 'released: "2026-10-28"', "released: null"),
]  # fmt: skip
EVIDENCE = [
    ("torch", "confidence: high", "confidence: sure"),
    ("cuda", "confidence: medium", "confidence: mid"),
    ("torch", 'source: "torch wheels', 'source: " "\nelse: "torch wheels'),
    ("torch", "as_of: 2026-", "as_of: 2926-"),
    ("torch", "as_of: 2026-", "as_of: 1026-"),
    ("transformers", "as_of: 2026-11", "as_of: 2026-17"),
    ("parts/prices.yaml", "as_of: 2026-07-09", "as_of: soon"),
]
KEYS = [
    ("torch", 'release: "2.13.0"', 'release: "2.12.1"'),
    ("packages", 'package: peft, first: "0.4.0"', 'package: peft, first: "0.3.0"'),
    ("cuda", 'branch: "470"', 'branch: "535"'),
    ("cuda", "toolkits: [cuda], ", ""),
    ("parts/prices.csv", "\ng2-standard-8,", "\ng2-standard-4,"),
]


@pytest.mark.parametrize(
    ("check", "table", "old", "new"),
    CASES,
    ids=lambda value: value.__name__.removeprefix("test_") if callable(value) else None,
)
def test_a_check_fails_on_a_damaged_table(
    tmp_path: Path, check: Callable[..., None], table: str, old: str, new: str
) -> None:
    folder = damaged(tmp_path, table, old, new)
    with pytest.raises((AssertionError, InvalidVersion, InvalidSpecifier, ValueError, KeyError)):
        check(**asked_for(check, folder, table))


@pytest.mark.parametrize(
    "check",
    dict.fromkeys(case[0] for case in CASES),
    ids=lambda check: check.__name__.removeprefix("test_"),
)
def test_the_same_check_holds_where_nothing_is_damaged(
    tmp_path: Path, check: Callable[..., None]
) -> None:
    check(**asked_for(check, damaged(tmp_path, "wheels", "rows:", "rows:"), "wheels"))


def test_every_check_is_shown_to_fail() -> None:
    """A check that is added needs a table on which it fails."""
    checks = {name for name in vars(references) if name.startswith("test_")} | {
        name for name, check in vars(tables).items() if "facts" in _needs(name, check)
    }
    assert checks <= {case[0].__name__ for case in CASES}


@pytest.mark.parametrize(("table", "old", "new"), EVIDENCE)
def test_evidence_that_is_none_is_noticed(tmp_path: Path, table: str, old: str, new: str) -> None:
    folder = damaged(tmp_path, table, old, new)
    with pytest.raises((AssertionError, ValueError)):
        tables.test_tables_carry_their_evidence(changed(folder, table))


@pytest.mark.parametrize(("table", "old", "new"), KEYS)
def test_a_key_that_stands_twice_is_noticed(tmp_path: Path, table: str, old: str, new: str) -> None:
    folder = damaged(tmp_path, table, old, new)
    with pytest.raises(AssertionError):
        tables.test_keys_are_unique(changed(folder, table).with_suffix(".yaml"))


def damaged(tmp_path: Path, table: str, old: str, new: str) -> Path:
    """Return a copy of the tables with the first `old` of one of them made `new`."""
    folder = tmp_path / "tables"
    shutil.copytree(FOLDER, folder)
    path = changed(folder, table)
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{table} no longer has {old!r}: change this case"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return folder


def changed(folder: Path, table: str) -> Path:
    """Return the file of a table: torch is torch.yaml, others say their ending."""
    return folder / table if "." in table else folder / f"{table}.yaml"


def asked_for(check: Callable[..., None], folder: Path, table: str) -> dict[str, Any]:
    """Return the arguments of a check: the compiled tables, with `table` compiled anew from
    `folder`.
    """
    part, path = table.startswith("parts/"), changed(folder, table).with_suffix(".yaml")
    compiled, on_demand = folder.parent / "compiled.json", folder.parent / "on_demand"
    held, anew = json.loads(COMPILED_TABLES.read_bytes()), tables._script().table(path)
    compiled.write_text(json.dumps(held if part else {**held, path.stem: anew}), encoding="utf-8")
    shutil.copytree(LAZY_TABLES_FOLDER, on_demand)
    if part:
        (on_demand / f"{path.stem}.json").write_text(
            json.dumps({"schema": held["schema"], **anew}), encoding="utf-8"
        )
    made = {"facts": lambda: load_facts(compiled), "folder": lambda: on_demand}
    return {name: made[name]() for name in _needs(check.__name__, check)}


def _needs(name: str, check: Any) -> tuple[str, ...]:
    code = getattr(check, "__code__", None)
    return (
        code.co_varnames[: code.co_argcount]
        if code is not None and name.startswith("test_")
        else ()
    )
