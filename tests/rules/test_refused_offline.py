"""What plan refuses of an instance without a look at Google Cloud, lint has said before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provision.diagnostics import Severity
from provision.rules import ResolvedSet
from tests.rules.conftest import Ask
from tests.targets.google import SPEC
from tests.targets.test_workbench import place, refused

TOP: dict[str, Any] = {
    "gpu": "L4",
    "cuda": "12.8",
    "python": "3.12",
    "packages": ["torch", "ipykernel"],
}
AS_IT_SHOULD_BE = {
    "nat": True,
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "max_lifetime": "8h",
}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no bucket": ({"bucket": None}, {}, "GCP021"),
    "a mirror that is a folder": ({"mirrors": {"pypi": "file:///srv/mirror"}}, {}, "GCP023"),
    "a secret of the caller's": ({}, {"secrets": {"HF_TOKEN": {"env": "HF_TOKEN"}}}, "GCP023"),
    "a secret of Colab's": ({}, {"secrets": {"HF_TOKEN": {"colab": "HF_TOKEN"}}}, "GCP023"),
    "a toolkit": ({}, {"cuda_toolkit": "12.8"}, "GCP024"),
    "a container": ({"image": "us-docker.pkg.dev/x/y:1"}, {}, "GCP024"),
    "a container without a tag": ({"image": "us-docker.pkg.dev/x/y"}, {}, "GCP024"),
    "managed credentials": ({"managed_euc": True, "service_account": None}, {}, "GCP012"),
    "a subnet beside zones of several regions": (
        {"subnet": "ml", "zones": ["us-central1-a", "us-east1-b"]},
        {},
        "GCP008",
    ),
    "a card that Workbench has not": ({}, {"gpu": "RTX-4090"}, "GCP004"),
    "cards in a number that no machine has": ({}, {"gpu": "L4:3"}, "GCP005"),
    "memory that no machine with the card has": ({}, {"requires": {"ram": "9000GiB"}}, "MEM003"),
    "memory that no machine has": (
        {},
        {"gpu": "none", "cuda": "none", "requires": {"ram": "90000GiB"}},
        "MEM003",
    ),
}


def text(target: dict[str, Any], fields: dict[str, Any]) -> str:
    given = {
        key: value
        for key, value in {**SPEC, **AS_IT_SHOULD_BE, **target}.items()
        if value is not None
    }
    return json.dumps({**TOP, **fields, "targets": {"wb": given}})


def test_a_spec_as_it_should_be_is_neither_refused_nor_found_fault_with(ask: Ask) -> None:
    assert refused(place(AS_IT_SHOULD_BE)) == []
    assert ask(text({}, {})).area("GCP", "MEM", "NET") == []


@pytest.mark.parametrize("name", REFUSED)
def test_lint_says_what_plan_refuses(ask: Ask, name: str) -> None:
    target, fields, identity = REFUSED[name]
    assert refused(place({**AS_IT_SHOULD_BE, **target}, **fields))
    assert {finding.severity for finding in ask(text(target, fields)).of(identity)} == {
        Severity.ERROR
    }


def test_a_card_without_torch_is_said_of_the_resolved_set(ask: Ask) -> None:
    without = {"packages": ["ipykernel"]}
    assert ask(text({}, without)).one("GCP022").severity is Severity.WARNING
    assert (
        ask(text({}, without), resolved=ResolvedSet({"ipykernel": "7.1.0"}, "3.12"))
        .one("GCP022")
        .severity
        is Severity.ERROR
    )
