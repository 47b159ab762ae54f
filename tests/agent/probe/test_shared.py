"""An image's own interpreter, which holds packages of others: the lock's are judged, the others are
looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import ProbeError
from tests.agent.probe.bench import Environment, checks, write_package


@pytest.fixture
def image(environment: Environment) -> Environment:
    """One locked package, and of the image: a package whose requirement is unmet, a .pth file and a
    module that no package lists.
    """
    environment.add("locked")
    site = next(environment.root.glob("lib/python*/site-packages"))
    write_package(site, "theirs", "", "3.0", "absent>=1")
    (site / "theirs.pth").write_text("")
    (site / "loose.py").write_text("")
    return environment


def reading(report: dict[str, Any], key: str) -> Any:
    return next(one["value"] for one in report["readings"] if one["key"] == key)


def test_what_the_image_brings_besides_fails_nothing(image: Environment) -> None:
    code, report, said = image.verify(shared=True)
    assert (code, report["verdict"]["result"]) == (0, "verified"), said
    found = checks(report)
    assert {found[name]["status"] for name in ("P01", "P02", "P03", "P04", "P07")} == {"pass"}
    assert reading(report, "packages.unlocked") == ["theirs 3.0"]
    assert reading(report, "packages.unmet_unlocked") == [
        "theirs 3.0 needs absent>=1, which is not installed"
    ]
    assert reading(report, "packages.stray_pth") == ["theirs.pth"]
    assert "the image has 1 other packages" in found["P03"]["message"]


def test_the_same_fails_in_an_environment_of_our_own(image: Environment) -> None:
    code, report, _ = image.verify()
    assert code == 1
    found = checks(report)
    assert (found["P03"]["status"], found["P04"]["status"], found["P07"]["status"]) == (
        "warn",
        "fail",
        "fail",
    )


def test_what_a_locked_package_requires_has_to_be_there(image: Environment) -> None:
    image.add("needs", requires="theirs>=4")
    code, report, _ = image.verify(shared=True)
    assert code == 1
    assert checks(report)["P04"]["observed"] == ["needs 1.0 needs theirs>=4, but 3.0 is installed"]


def test_a_locked_package_is_judged_as_ever(image: Environment) -> None:
    site = next(image.root.glob("lib/python*/site-packages"))
    (site / "locked/__init__.py").write_text("longer than it was")
    found = checks(image.verify(shared=True)[1])
    assert found["P07"]["status"] == "fail"
    (image.root / "elsewhere/locked").mkdir(parents=True)
    (image.root / "elsewhere/locked/__init__.py").write_text("")
    found = checks(
        image.verify(shared=True, environ={"PYTHONPATH": str(image.root / "elsewhere")})[1]
    )
    assert found["P03"]["status"] == "fail"
    image.packages["locked"] = "2.0"
    assert checks(image.verify(shared=True)[1])["P02"]["status"] == "fail"


def test_another_interpreter_than_the_one_that_was_set_up_fails(image: Environment) -> None:
    python = {"version": "3.11", "prefix": "/usr/other"}
    assert checks(image.verify(shared=True, python=python)[1])["P01"]["status"] == "fail"


def test_two_images_with_the_locked_packages_have_one_identity(image: Environment) -> None:
    first = image.verify(shared=True)[1]["digests"]["identity"]
    site = next(image.root.glob("lib/python*/site-packages"))
    write_package(site, "another", "", "1.0")
    report = image.verify(shared=True)[1]
    assert reading(report, "packages.count") == 3
    assert report["digests"]["identity"] == first


def test_how_packages_came_there_is_read_where_the_expectations_say(image: Environment) -> None:
    note = image.root / "elsewhere.json"
    note.write_text(json.dumps({"counts": {"hash-checked": 1, "preinstalled": 0}}))
    assert reading(image.verify(shared=True, installed=str(note))[1], "packages.provenance") == {
        "hash-checked": 1
    }
    (image.root / "installed.json").write_text(json.dumps({"counts": {"reinstalled": 1}}))
    assert reading(image.verify(shared=True)[1], "packages.provenance") == {"reinstalled": 1}


@pytest.mark.parametrize(
    ("key", "value"), [("shared", "yes"), ("shared", None), ("installed", 1), ("installed", None)]
)
def test_both_are_read_strictly(
    document: Callable[..., dict[str, Any]], key: str, value: object
) -> None:
    with pytest.raises(ProbeError, match=key):
        parse_expectations({**document(), key: value})


def test_without_them_an_environment_is_ours(document: Callable[..., dict[str, Any]]) -> None:
    expected = parse_expectations(document())
    assert expected.shared is False
    assert Path(expected.provenance_file) == Path("/env/installed.json")
