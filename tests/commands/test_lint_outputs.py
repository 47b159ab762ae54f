"""Findings as the formats of CI services, in files, and as JSON with a schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from provision.commands.schema import document_schema_text
from tests.commands.test_lint_forms import BAD, GOOD, HOSTILE, lint, write

TOKEN = "hf_" + "a1B2" * 8
WARNED = f"%YAML 1.1\n---\n{GOOD}"
FORMS = ("text", "concise", "json", "sarif", "gitlab", "junit", "markdown", "rdjson")


def document(folder: Path, form: str, *words: str, **variables: str) -> Any:
    return json.loads(lint(folder, *words, "--output-format", form, **variables).stdout)


def test_several_files_in_one_call(tmp_path: Path) -> None:
    write(tmp_path, a=BAD)
    outputs = [f"--output={form}:out/{form}" for form in FORMS if form != "text"]
    (tmp_path / "out").mkdir()
    done = lint(tmp_path, "a.yaml", *outputs, "--output", "text:a:b.txt")
    assert done.returncode == 1
    assert done.stdout.startswith("error[PKG001]")
    assert (tmp_path / "a:b.txt").read_text() == done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(FORMS) - {"text"}
    for form in ("json", "sarif", "gitlab", "junit", "markdown", "rdjson", "concise"):
        stdout = lint(tmp_path, "a.yaml", "--output-format", form).stdout
        assert (tmp_path / "out" / form).read_text() == stdout


@pytest.mark.parametrize("word", ["sarif", "sarif:", ":a", "github:a", "xml:a"])
def test_an_output_that_is_not_possible(tmp_path: Path, word: str) -> None:
    write(tmp_path, a=BAD)
    done = lint(tmp_path, "a.yaml", "--output", word)
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not have the form FORMAT:PATH" in done.stderr


def test_an_output_that_cannot_be_written(tmp_path: Path) -> None:
    write(tmp_path, a=BAD)
    done = lint(tmp_path, "a.yaml", "--output", "json:gone/x.json")
    assert done.returncode == 2
    assert "gone" in done.stderr


def test_gitlab(tmp_path: Path) -> None:
    write(tmp_path, a=f"{BAD}---\n{BAD}", b=WARNED)
    found = document(tmp_path, "gitlab", "a.yaml", "b.yaml", "gone.yaml")
    assert [(item["check_name"], item["severity"]) for item in found] == [
        ("PKG001", "major"),
        ("PKG001", "major"),
        ("YML015", "minor"),
        ("unreadable-file", "critical"),
    ]
    for item in found:
        assert set(item) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert len({item["fingerprint"] for item in found}) == 4
    assert found[1]["location"] == {"path": "a.yaml", "lines": {"begin": 7, "end": 7}}
    (tmp_path / "a.yaml").write_text(f"# moved\n{BAD}---\n{BAD}")
    moved = document(tmp_path, "gitlab", "a.yaml")
    assert [item["fingerprint"] for item in moved] == [item["fingerprint"] for item in found[:2]]
    (tmp_path / "sub").mkdir()
    below = document(tmp_path / "sub", "gitlab", "../a.yaml", CI_PROJECT_DIR=str(tmp_path))
    assert {item["location"]["path"] for item in below} == {"a.yaml"}


def test_junit(tmp_path: Path) -> None:
    write(tmp_path, a=BAD, b=WARNED, c=GOOD)
    words = ("a.yaml", "b.yaml", "c.yaml", "gone.yaml", "--output-format", "junit")
    root = ET.fromstring(lint(tmp_path, *words).stdout)
    counts = {
        suite.get("name"): tuple(
            suite.get(name) for name in ("tests", "failures", "errors", "skipped")
        )
        for suite in root
    }
    assert counts == {
        "a.yaml": ("1", "1", "0", "0"),
        "b.yaml": ("1", "0", "0", "1"),
        "c.yaml": ("1", "0", "0", "0"),
        "gone.yaml": ("1", "0", "1", "0"),
    }
    failing = ET.fromstring(lint(tmp_path, *words, "--fail-on", "warning").stdout)
    assert failing[1].get("failures") == "1"


def test_rdjson_counts_bytes_and_suggests_safe_fixes(tmp_path: Path) -> None:
    text = 'gpu: none\npython: "3.11"\npackages: []\nenv: {É: "𐐀", RANK: "0"}\n'
    write(tmp_path, a=text.replace("É", "E"), b="gpu: none\npython: 3.10\npackages: []\n")
    found = document(tmp_path, "rdjson", "a.yaml", "b.yaml", "gone.yaml")
    by_code = {item["code"]["value"]: item for item in found["diagnostics"]}
    start = by_code["ENV001"]["location"]["range"]["start"]
    line = text.replace("É", "E").splitlines()[3].encode()
    assert line[start["column"] - 1 :].startswith((b"RANK", b'"0"'))
    (suggestion,) = by_code["YML003"]["suggestions"]
    assert suggestion["text"] == '"3.10"'
    assert suggestion["range"]["start"] == {"line": 2, "column": 9}
    assert by_code["unreadable-file"]["severity"] == "ERROR"


def test_markdown_lists_the_gravest_first_and_stays_short(tmp_path: Path) -> None:
    write(tmp_path, a=f"{WARNED}paths: {{data: x/y}}\n", b=GOOD)
    text = lint(tmp_path, "a.yaml", "b.yaml", "--output-format", "markdown").stdout
    assert text.splitlines()[0] == "### provision lint: 1 error, 1 warning"
    assert re.findall(r"^- \*\*(\w+)", text, re.MULTILINE) == ["error", "warning"]
    assert lint(tmp_path, "b.yaml", "--output-format", "markdown").stdout.startswith(
        "### provision lint: no findings"
    )
    for number in range(60):
        write(tmp_path, **{f"many{number}": GOOD + "env:\n" + "  RANK: '0'\n" + PATHS})
    many = lint(tmp_path, "many*.yaml", "--output-format", "markdown").stdout
    assert len(many.encode()) < 65_536
    assert re.search(r"\d+ more are not listed", many)


PATHS = "paths:\n" + "".join(f"  data{number}: x/{'y' * 60}\n" for number in range(20))


@pytest.mark.parametrize("form", ["gitlab", "junit", "markdown", "rdjson"])
def test_hostile_names_and_secrets(tmp_path: Path, form: str) -> None:
    for name in HOSTILE:
        (tmp_path / name).write_text(BAD)
    write(tmp_path, secret=f"{GOOD}env: {{T: {TOKEN}}}\n", evil="gpu: \x1b[31m@all <b>\u202e\n")
    out = lint(tmp_path, "secret.yaml", "evil.yaml", *HOSTILE, "--output-format", form).stdout
    assert TOKEN not in out
    assert "\x1b" not in out
    assert "\u202e" not in out
    if form == "markdown":
        assert "<b>" not in out
        assert not re.search("@all", out)


def describes(schema: dict[str, Any], root: dict[str, Any], value: Any, place: str) -> list[str]:
    """The places of keys in a value that the schema does not describe."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    parts = [schema, *schema.get("allOf", ()), *schema.get("oneOf", ())]
    parts = [
        root["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in parts
    ]
    if isinstance(value, dict):
        known: dict[str, Any] = {}
        for part in parts:
            known |= part.get("properties", {})
        missing = [f"{place}.{key}" for key in value if key not in known]
        for key in value.keys() & known.keys():
            missing += describes(known[key], root, value[key], f"{place}.{key}")
        return missing
    if isinstance(value, list):
        items = next((part["items"] for part in parts if "items" in part), {})
        return [line for item in value for line in describes(items, root, item, f"{place}[]")]
    return []


def test_json_matches_its_schema_and_every_key_is_described(tmp_path: Path) -> None:
    schema = json.loads(document_schema_text("lint"))
    Draft202012Validator.check_schema(schema)
    accepted = f"{BAD.rstrip()} # provision: ignore[PKG001] x\n"
    write(tmp_path, a=BAD, b=accepted, c="gpu: none\npython: 3.10\n", d="gpu: [\n")
    (tmp_path / "base.json").write_text('{"schema": "provision.baseline/1", "findings": []}')
    found = document(tmp_path, "json", *(f"{name}.yaml" for name in ("a", "b", "c", "d", "gone")))
    assert (len(found["suppressed"]), len(found["errors"])) == (1, 1)
    assert list(Draft202012Validator(schema).iter_errors(found)) == []
    assert describes(schema, schema, found, "") == []
    assert describes(schema, schema, {"nope": 1, "summary": {"x": 1}}, "") == [
        ".nope",
        ".summary.x",
    ]
    broken = {**found, "summary": {**found["summary"], "error": "1"}}
    assert list(Draft202012Validator(schema).iter_errors(broken)) != []
    assert lint(tmp_path, "a.yaml", "--output-format", "json").returncode == 1


def test_the_schema_is_printed(tmp_path: Path) -> None:
    from tests.commands.test_lint_foreign import provision

    done = provision(tmp_path, "schema", "lint")
    assert done.stdout == document_schema_text("lint")
