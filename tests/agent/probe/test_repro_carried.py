"""The probe packed as a program that asks one check: whole, of nobody, and ending with 1, 0 or 2 as
the check does.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.catalogue import is_applicable, select_checks
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import Check, Need
from provision.errors import Refused
from provision.verification import Report
from provision.verification.repro import build_repro_program
from provision.verification.repro.anonymization import anonymize_expectations
from provision.verification.repro.packed_probe import (
    CHECKS_OF_PROJECTS,
    CHECKS_OF_REPLICAS,
    narrow_expectations,
)
from tests import fork_server
from tests.agent.probe.bench import Environment, clean_environ
from tests.agent.probe.conftest import document
from tests.agent.probe.machines import SMI, make_program, told

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "reports" / "recorded"
NOT_REPRODUCIBLE = CHECKS_OF_PROJECTS | CHECKS_OF_REPLICAS
REPRODUCIBLE = [check for check in CHECKS if check.id not in NOT_REPRODUCIBLE]
TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"
PRIVATE: dict[str, Any] = {
    "tier": "burn",
    "spec": {"name": "zelda-thesis", "digest": "sha256:5ec"},
    "target": {"name": "zelda-box", "kind": "workbench"},
    "python": {"version": "3.12", "prefix": "/home/zelda/envs/thesis"},
    "installed": "/home/zelda/envs/installed.json",
    "gpu": {"type": "L4", "count": 2},
    "packages": [{"name": name, "version": "1.0"} for name in ("torch", "transformers", "numpy")],
    "direct": ["numpy", "torch"],
    "paths": {"output": "/home/zelda/out", "data": "/Users/zelda/data"},
    "env": {"CACHE": "/home/zelda/.cache", "MAIL": "zelda@example.org", "HUB": TOKEN},
    "secrets": ["HF_TOKEN"],
    "glibc_min": "2.17",
    "training": {
        **document()["training"],
        "dataloader_workers": 2,
        "method": "lora",
        "strategy": "ddp",
        "launcher": "auto",
        "torch_compile": True,
        "model": {"parameters": 90000, "hidden_size": 64, "layers": 2},
        "batch_size": 1,
        "sequence_length": 32,
        "arguments": {
            "output_dir": "/home/zelda/out",
            "hub_model_id": "zelda/thesis",
            "run_name": "zelda-1",
            "warmup_steps": 10,
        },
    },
}
"""Expectations that declare enough for every check to be asked, in the name of a person who is
nobody's business.
"""


def declared_for(check: Check) -> dict[str, Any]:
    """Return what declares enough for a check: those of jax and Keras need that framework."""
    if {Need.FRAMEWORK, Need.INSTRUCTIONS}.isdisjoint(check.needs):
        return PRIVATE
    name, library = ("keras", "tensorflow") if Need.KERAS in check.needs else ("jax", "jaxlib")
    training = {
        **PRIVATE["training"],
        **dict.fromkeys(("model", "batch_size", "sequence_length")),
        "framework": name,
        "backend": library if name == "keras" else "jax",
        "method": "full",
        "torch_compile": False,
        "strategy": "none",
        "launcher": "auto",
    }
    locked = [{"name": package, "version": "1.0"} for package in (name, library)]
    return {**PRIVATE, "training": training, "packages": [*PRIVATE["packages"], *locked]}


def one_failed(name: str, **changes: Any) -> Report:
    """A report in which this check alone has failed, in a way that its own program may not know."""
    found = json.loads((RECORDED / "small-shm.json").read_bytes())
    found["tier"] = "burn"
    found["checks"] = [
        {
            "id": name,
            "title": "a check",
            "status": "fail",
            "message": "it does not hold",
            "expected": None,
            "observed": None,
            **changes,
        }
    ]
    return Report(found)


@pytest.mark.long
@pytest.mark.thorough
def test_every_check_has_a_program_that_python_3_10_reads_and_that_names_nobody(
    subtests: pytest.Subtests,
) -> None:
    for check, expected in itertools.product(REPRODUCIBLE, (None, "no exception", "completes")):
        identity = check.id
        with subtests.test(f"{identity} {expected}"):
            name = f"{identity}:numpy" if identity == "P06" else identity
            text = build_repro_program(
                one_failed(name, expected=expected),
                name,
                anonymize_expectations(document(**declared_for(check)), "/home/zelda"),
            )

            ast.parse(text, feature_version=(3, 10))
            assert not re.search(
                r"zelda|thesis", re.sub(r"\n[A-Za-z0-9+/=]{150}|\n[A-Za-z0-9+/=]+\n", "", text)
            )
            assert TOKEN not in text


def test_the_probe_is_asked_that_check_and_what_it_comes_after(subtests: pytest.Subtests) -> None:
    for check in REPRODUCIBLE:
        with subtests.test(check.id):
            name = f"{check.id}:numpy" if check.id == "P06" else check.id
            expected = parse_expectations(
                narrow_expectations(
                    name, anonymize_expectations(document(**declared_for(check)), ""), "burn"
                )
            )

            mine = [one for one in select_checks(expected, frozenset({name})) if one.id == name]
            assert [is_applicable(one.check, expected) for one in mine] == [True]
            assert {one.check.id for one in select_checks(expected, frozenset({name}))} >= {
                check.id,
                *check.after,
            }


@pytest.mark.parametrize("name", sorted(NOT_REPRODUCIBLE))
def test_a_check_of_own_code_or_of_several_machines_has_no_program(name: str) -> None:
    assert name in {check.id for check in CHECKS}
    with pytest.raises(Refused, match="cannot be written as a standalone program") as refused:
        build_repro_program(one_failed(name), name, document(**PRIVATE))
    assert "`provision " in refused.value.hint


def test_what_a_check_does_not_ask_for_is_left_out() -> None:
    of_training, of_paths, of_secrets = (
        narrow_expectations(name, anonymize_expectations(document(**PRIVATE), "/home/zelda"), "")
        for name in ("R07", "W01", "Y01")
    )

    assert of_training["training"]["arguments"] == {
        "output_dir": "left out",
        "hub_model_id": "left out",
        "run_name": "left out",
        "warmup_steps": 10,
    }
    assert (of_training["paths"], of_training["env"], of_training["secrets"]) == ({}, {}, [])
    assert of_paths["paths"] == {"output": "${HOME}/out", "data": "${HOME}/data"}
    assert (of_secrets["secrets"], of_secrets["training"]["arguments"]) == (["HF_TOKEN"], {})


@pytest.mark.parametrize(
    ("promised", "said"),
    [
        (document(), "they are for tier quick and contain nothing for this check"),
        (
            {**document(), "schema": "provision.expectations/9"},
            "got 'provision.expectations/9'",
        ),
        ({"schema": 7}, "this version of provision does not write such expectations"),
        (
            {**document(), "training": "x"},
            "this version of provision does not write such expectations",
        ),
    ],
)
def test_expectations_that_do_not_fit_are_refused(promised: dict[str, Any], said: str) -> None:
    failed = one_failed("S01")
    failed.document["tier"] = None
    with pytest.raises(Refused) as refused:
        build_repro_program(failed, "S01", promised)

    assert said in refused.value.why


# Faults that no short program shows, as the probe has found them


def written(environment: Environment, name: str, *words: str) -> str:
    command = [
        *fork_server.ARGV,
        "report",
        "repro",
        str(environment.root / "report.json"),
        name,
        *words,
    ]
    done = fork_server.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "PROBE = " in done.stdout
    return done.stdout


def ends(python: str, program: str, folder: Path, **environ: str) -> tuple[int, str]:
    (folder / "repro.py").write_text(program)
    done = subprocess.run(
        [python, "repro.py"],
        capture_output=True,
        text=True,
        env={**clean_environ(), **environ},
        cwd=folder,
        timeout=600,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_package_that_is_not_locked(environment: Environment) -> None:
    environment.add("alpha").add("omega")
    environment.packages.pop("omega")
    environment.verify(tier="inventory")
    program = written(environment, "P03")

    code, said = ends(environment.python, program, environment.root)
    assert (code, said) == (
        1,
        "P03 no conflicting packages: warn: installed but not locked: omega 1.0\n",
    )
    site = next(environment.root.glob("lib/python*/site-packages"))
    for file in sorted((site / "omega-1.0.dist-info").iterdir()):
        file.unlink()
    (site / "omega-1.0.dist-info").rmdir()
    assert ends(environment.python, program, environment.root)[0] == 0


def test_a_card_of_another_capability_and_no_card_at_all(
    environment: Environment, tmp_path: Path
) -> None:
    program_folder = make_program(tmp_path)
    there = {
        "PATH": f"{program_folder}:/usr/bin:/bin",
        "FAKE_SMI": told({**SMI, "compute_cap": "7.5"}),
    }
    environment.verify(
        environ=there,
        gpu={"type": "L4", "count": 1},
        tier="inventory",
        requires__compute_capability=">=8.0",
    )
    program = written(environment, "D03")

    code, said = ends(environment.python, program, environment.root, **there)
    assert (code, "compute capability 7.5 does not satisfy >=8.0" in said) == (1, True)
    assert (
        ends(environment.python, program, environment.root, **{**there, "FAKE_SMI": told(SMI)})[0]
        == 0
    )
    code, said = ends(environment.python, program, environment.root, PATH="/usr/bin:/bin")
    assert (code, "D03 GPU model: unknown: " in said) == (2, True)


def test_what_a_report_says_is_data_beside_a_packed_probe_too(tmp_path: Path) -> None:
    hostile = (
        '\'}; import os; os.system(\'touch owned\') #\n""" PROBE HERE {"CASE": "HERE"} \x1b[2J'
    )
    program = build_repro_program(
        one_failed("H04", message=hostile),
        "H04",
        document(training__dataloader_workers=9999, env={"A": hostile}),
    )

    assert ends(sys.executable, program, tmp_path)[0] == 1
    assert not (tmp_path / "owned").exists()
    assert "\x1b" not in program


def test_a_probe_that_gives_no_report_tells_nothing(tmp_path: Path) -> None:
    program = build_repro_program(one_failed("S01"), "S01", document(**PRIVATE))

    assert ends(sys.executable, program.replace('"verify", ', '"unknown", '), tmp_path)[0] == 2


@pytest.mark.long
@pytest.mark.hf
def test_options_that_the_training_loses(
    hf_python: str, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    packages = [
        {"name": name, "version": "1.0"} for name in ("torch", "transformers", "accelerate")
    ]

    def program(rate: Any) -> str:
        return build_repro_program(
            one_failed("R07"),
            "R07",
            document(packages=packages, training__arguments={"learning_rate": rate}),
        )

    code, said = ends(hf_python, program("1e-4"), tmp_path)
    assert (code, "the string '1e-4', not a number" in said) == (1, True), said
    code, said = ends(hf_python, program(1e-4), tmp_path)
    assert code == 0, said


@pytest.mark.long
@pytest.mark.hf
def test_a_model_of_another_size(
    hf_python: str, tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    packages = [
        {"name": name, "version": "1.0"} for name in ("torch", "transformers", "accelerate")
    ]

    def program(parameters: int) -> str:
        shape = {"parameters": parameters, "hidden_size": 64, "layers": 2}
        training = {
            **PRIVATE["training"],
            "strategy": "none",
            "method": "full",
            "torch_compile": False,
            "arguments": {},
            "model": shape,
        }
        return build_repro_program(
            one_failed("S01"), "S01", document(packages=packages, tier="deep", training=training)
        )

    code, said = ends(hf_python, program(10_000), tmp_path)
    assert (code, "0.01 million are declared" in said) == (1, True), said
    code, said = ends(hf_python, program(5_000_000), tmp_path)
    assert code == 0, said
