"""SARIF: valid by both schemas, exact places, marks that outlive edits, and nothing of a secret."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from jsonschema import Draft4Validator, Draft7Validator
from jsonschema.protocols import Validator

from provision.adapters import RealSystem
from provision.commands.explain import all_pages
from provision.commands.shared.load import CheckedDocument, check_file
from provision.diagnostics import Diagnostic, RouteLocation, Severity
from provision.errors import SourceError
from provision.facts import load_facts
from provision.views.diagnostics.repository_paths import Repository
from provision.views.diagnostics.sarif import to_sarif_log

SCHEMAS = Path(__file__).parents[1] / "schemas"
BAD = (
    "gpu: L4\npython: 3.12\npackages: [torch==2.13.0, transformers==5.13.1]\nenv: {HF_TOKEN: "
    "correct-horse-battery}\n"
)
RULES = (
    'gpu: L4\npython: "3.12"\npackages:\n  - torch==2.13.0\n  - transformers==5.13.1\n  - '
    '{name: sklearn, version: ">=0"}\npaths: {data: here/data}\n'
)
Told = Callable[..., dict[str, Any]]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    def told(
        *texts: str,
        names: tuple[str, ...] = (),
        unread: tuple[tuple[str, SourceError], ...] = (),
        extra: tuple[Diagnostic, ...] = (),
    ) -> dict[str, Any]:
        documents: list[CheckedDocument] = []
        for number, text in enumerate(texts):
            path = tmp_path / (names[number] if names else f"{number}.yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            documents += check_file(path, RealSystem({}), load_facts())
        found = [((*judged.diagnostics, *extra), judged.source) for judged in documents]
        return to_sarif_log(found, unread, all_pages(), Repository(tmp_path, tmp_path), 1)

    return told


@pytest.fixture(
    params=[
        ("sarif-2.1.0.oasis.json", Draft4Validator),
        ("sarif-2.1.0.schemastore.json", Draft7Validator),
    ],
    ids=["oasis", "schemastore"],
)
def schema(request: pytest.FixtureRequest) -> Validator:
    name, kind = request.param
    return kind(json.loads((SCHEMAS / name).read_text(encoding="utf-8")))


def results(document: dict[str, Any]) -> list[dict[str, Any]]:
    (run,) = document["runs"]
    return list(run["results"])


def of(document: dict[str, Any], rule: str) -> dict[str, Any]:
    (found,) = (one for one in results(document) if one["ruleId"] == rule)
    return found


def marks(document: dict[str, Any]) -> dict[str, str]:
    return {
        one["ruleId"]: one["partialFingerprints"]["provisionPath/v1"] for one in results(document)
    }


@pytest.mark.parametrize("name", ["sarif-2.1.0.oasis.json", "sarif-2.1.0.schemastore.json"])
def test_the_schemas_are_the_published_ones(name: str) -> None:
    assert (
        hashlib.sha256((SCHEMAS / name).read_bytes()).hexdigest()
        in (SCHEMAS / "README.md").read_text()
    )


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ('gpu: none\npython: "3.11"\npackages: []\n',),
        (
            BAD,
            RULES,
            "gpu: [\n",
            "",
            'gpu: none\npython: "3.11"\npackages: []\n---\ngpu: L4\nbogus: 1\n',
        ),
        ("\ufeffgpu: none\r\npython: 3.10\r\nname: 漢😀\r\n",),
    ],
)
def test_every_log_is_valid(told: Told, schema: Validator, texts: tuple[str, ...]) -> None:
    document = told(
        *texts, unread=(("gone.yaml", SourceError("cannot read gone.yaml", why="it is not there")),)
    )
    schema.validate(json.loads(json.dumps(document)))


def test_the_schemas_can_say_no(told: Told, schema: Validator) -> None:
    document = told(BAD)
    document["runs"][0]["results"][0]["level"] = "fatal"
    assert not schema.is_valid(document)


def test_results_are_there_when_there_are_none(told: Told) -> None:
    (run,) = told('gpu: none\npython: "3.11"\npackages: []\n')["runs"]
    assert run["results"] == []
    assert run["invocations"] == [
        {"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}
    ]
    assert [one["location"]["uri"] for one in run["artifacts"]] == ["0.yaml"]


def test_every_rule_is_described(told: Told) -> None:
    (run,) = told()["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [
        page.id for page in all_pages() if page.id != "BUG000"
    ]
    for rule in rules:
        assert re.fullmatch(r"([A-Z][a-z0-9]*)+", rule["name"])
        assert all(
            (
                rule["shortDescription"]["text"],
                rule["fullDescription"]["text"],
                rule["help"]["text"],
                rule["help"]["markdown"],
            )
        )
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert len(rule["properties"]["tags"]) <= 10
        assert ("security-severity" in rule["properties"]) == rule["id"].startswith("SEC")


def test_a_result_points_at_exact_characters(told: Told) -> None:
    text = (
        'name: "漢😀"\r\npython: "3.12"\r\ngpu: L4\r\npackages: ["漢", torch==2.13.0]\r\nbögus: '
        "1\r\n"
    )
    found = of(told(text), "SPC001")
    (place,) = found["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "0.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {
            "startLine": 5,
            "startColumn": 1,
            "endLine": 5,
            "endColumn": 6,
            "charOffset": text.index("bögus"),
            "charLength": 5,
        },
    }
    assert place["logicalLocations"] == [
        {"fullyQualifiedName": '["b\\u00f6gus"]', "kind": "property"}
    ]
    assert found["level"] == "error"


def test_rule_indices_lead_to_the_rules(told: Told) -> None:
    document = told(BAD, RULES)
    rules = document["runs"][0]["tool"]["driver"]["rules"]
    assert len(results(document)) > 3
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in results(document))


def test_a_fix_makes_the_text_that_lint_would_write(told: Told) -> None:
    document = told(RULES)
    text = RULES
    (fix,) = of(document, "PKG001")["fixes"]
    (change,) = fix["artifactChanges"]
    for replacement in reversed(change["replacements"]):
        start = replacement["deletedRegion"]["charOffset"]
        text = (
            text[:start]
            + replacement["insertedContent"]["text"]
            + text[start + replacement["deletedRegion"]["charLength"] :]
        )
    assert fix["properties"] == {"applicability": "safe"}
    assert text != RULES
    assert "PKG001" not in marks(told(text))


def test_related_places_are_told(told: Told) -> None:
    found = of(told('gpu: L4\npython: "3.12"\ngpu: T4\npackages: []\n'), "YML002")
    (related,) = found["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == 1
    assert related["message"]["text"]


EDITS = {
    "lines move": lambda text: "# a comment\n\n" + text.replace("gpu: L4\n", "") + "gpu: L4\n",
    "another item before": lambda text: text.replace("packages:\n", "packages:\n  - numpy\n"),
    "another version": lambda text: text.replace("5.13.1", "5.13.0"),
    "another spelling": lambda text: text.replace(
        "  - transformers==5.13.1\n", '  - {name: Transformers, version: "==5.13.1"}\n'
    ),
    "another line break": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_marks_outlive_edits(told: Told, edit: str) -> None:
    before = marks(told(RULES))
    assert set(before) == {"PKG001", "PKG006", "REF101"}
    assert marks(told(EDITS[edit](RULES))) == before


def test_marks_tell_places_apart(told: Told) -> None:
    twice = (
        'gpu: none\npython: "3.11"\npackages: [sklearn]\nname: a\n---\ngpu: none\npython: '
        '"3.11"\npackages: [sklearn]\nname: b\n'
    )
    found = [one["partialFingerprints"]["provisionPath/v1"] for one in results(told(twice))]
    assert len(set(found)) == len(found) == 2
    other = marks(told(RULES.replace("here/data", "x").replace("data:", "output:")))
    same = marks(told(RULES))
    moved = {rule for rule in same if same[rule] != other[rule]}
    assert len(moved) == 1


def test_the_same_place_twice_gets_numbers(told: Told) -> None:
    extra = (
        Diagnostic("PKG001", "x", Severity.ERROR, "one", RouteLocation(("python",))),
        Diagnostic("PKG001", "x", Severity.ERROR, "two", RouteLocation(("python",))),
    )
    found = [
        one["partialFingerprints"]["provisionPath/v1"]
        for one in results(told('gpu: none\npython: "3.11"\npackages: []\n', extra=extra))
    ]
    assert [mark.rpartition(":")[2] for mark in found] == ["1", "2"]
    assert len({mark.rpartition(":")[0] for mark in found}) == 1


@pytest.mark.parametrize(
    "name",
    ["a b.yaml", "100%.yaml", "sub/ä漢.yaml", "a:b.yaml", "x?y#z.yaml", "a%0A::error::x.yaml"],
)
def test_names_are_percent_encoded_and_relative(told: Told, name: str) -> None:
    (one, *_) = results(told(BAD, names=(name,)))
    location = one["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uriBaseId"] == "%SRCROOT%"
    assert unquote(location["uri"]) == name
    assert re.fullmatch(r"[A-Za-z0-9._~/-]*(%[0-9A-F]{2}[A-Za-z0-9._~/-]*)*", location["uri"])


def test_what_went_wrong_with_us_is_no_result(told: Told) -> None:
    fault = Diagnostic("BUG000", "rule-failed", Severity.ERROR, "rule X failed", RouteLocation(()))
    (run,) = told(
        'gpu: none\npython: "3.11"\npackages: []\n',
        extra=(fault,),
        unread=(("gone.yaml", SourceError("cannot read gone.yaml", why="why")),),
    )["runs"]
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    unread, failed = invocation["toolExecutionNotifications"]
    assert unread["message"]["text"] == "cannot read gone.yaml\nwhy"
    assert unread["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "gone.yaml"
    assert failed["descriptor"]["id"] == "BUG000"
    assert [one["id"] for one in run["tool"]["driver"]["notifications"]] == ["BUG000"]


def test_no_fix_repeats_a_secret(told: Told) -> None:
    token = "hf_" + "Zq3" * 10
    text = (
        f"gpu: none\npython: 3.11\npackages: []\nname: {token}\nenv: {{A: "
        f"{token}}}\ndata_{token}: 1\n"
    )
    assert token not in json.dumps(told(text))


def test_messages_hold_no_links_and_no_controls(told: Told) -> None:
    hostile = Diagnostic(
        "PKG001",
        "x",
        Severity.ERROR,
        "see [this](https://evil.example)\x1b[2J\u202e",
        RouteLocation(()),
        related=(),
    )
    (one,) = results(told('gpu: none\npython: "3.11"\npackages: []\n', extra=(hostile,)))
    assert "](" not in one["message"]["text"]
    assert "\x1b" not in one["message"]["text"]
    assert "\u202e" not in one["message"]["text"]


def test_a_finding_without_a_route_has_a_mark_too(told: Told) -> None:
    one = of(told("gpu: [\n"), "YML001")
    assert "logicalLocations" not in one["locations"][0]
    assert of(told("\n\n\ngpu: [\n"), "YML001")["partialFingerprints"] == one["partialFingerprints"]


def test_nothing_of_this_machine_is_told(told: Told, tmp_path: Path) -> None:
    assert str(tmp_path) not in json.dumps(told(BAD, RULES))


def test_a_file_outside_the_root_is_absolute(tmp_path: Path) -> None:
    inside = Repository(tmp_path / "a", tmp_path / "a")
    assert inside.sarif_location("../b c.yaml") == {"uri": f"file://{tmp_path}/b%20c.yaml"}
    assert inside.relative_path("../b.yaml") is None
    assert inside.sarif_location("builtin:huggingface-trainer") == {
        "uri": "builtin:huggingface-trainer"
    }


@pytest.mark.parametrize(
    ("workspace", "here", "path"),
    [
        ("/w", "/w/sub", "sub/a.yaml"),
        ("/w", "/elsewhere", "a.yaml"),
        ("", "/w", "a.yaml"),
        ("w", "/w/sub", "a.yaml"),
        ("/w/../v", "/v/x", "x/a.yaml"),
    ],
)
def test_the_checkout_is_the_root(workspace: str, here: str, path: str) -> None:
    assert (
        Repository.from_environment(Path(here), {"GITHUB_WORKSPACE": workspace}).relative_path(
            "a.yaml"
        )
        == path
    )
