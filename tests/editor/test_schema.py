"""The JSON Schema is one, takes what the language takes, and refuses what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from provision import source
from provision.adapters import RealSystem
from provision.rules import RULES

ROOT = Path(__file__).parent.parent.parent
SPECS = [*sorted((ROOT / "specs").glob("*.yaml")), ROOT / "templates/spec.yaml"]
EXAMPLES = [
    (f"{rule.id}-{kind}-{n}", example.spec)
    for rule in RULES
    for kind in ("good", "bad")
    for n, example in enumerate(getattr(rule, kind))
]
BASE = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'


def data(text: str, folder: Path) -> tuple[Any, bool]:
    """The value of a spec's text by our own engine, and whether our own model takes it."""
    path = folder / "spec.yaml"
    path.write_text(text)
    (document,) = source.read_spec_file(path, RealSystem())
    spec, _ = source.validate_source(document)
    return document.data, spec is not None


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in a schema."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


def test_it_is_a_draft_7_schema(schema: dict[str, Any]) -> None:
    jsonschema.Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    references = {node["$ref"] for node in objects(schema) if isinstance(node.get("$ref"), str)}
    assert references
    assert all(
        reference.removeprefix("#/definitions/") in schema["definitions"]
        for reference in references
    )
    assert not any("$ref" in node and len(node) > 1 for node in objects(schema)), (
        "draft 7 ignores what stands beside $ref"
    )


def test_every_field_is_described(schema: dict[str, Any]) -> None:
    parts = [schema, *schema["definitions"].values()]
    fields = [
        (part.get("title"), name, field)
        for part in parts
        for name, field in part.get("properties", {}).items()
        if "const" not in field
    ]
    assert len(fields) > 80
    assert [(title, name) for title, name, field in fields if not described(field, schema)] == []


def described(field: dict[str, Any], schema: dict[str, Any]) -> bool:
    """Tell whether an editor has words to show: the field's own, or those of the part that it is."""  # noqa: E501
    parts = (
        schema["definitions"][part["$ref"].removeprefix("#/definitions/")]
        for part in field.get("allOf", ())
    )
    return bool(field.get("description")) or any(part.get("description") for part in parts)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_it_takes_every_spec_of_ours(schema: dict[str, Any], path: Path) -> None:
    (document,) = source.read_spec_file(path, RealSystem())
    jsonschema.validate(document.data, schema, cls=jsonschema.Draft7Validator)


def test_it_takes_the_example_of_every_rule(
    schema: dict[str, Any], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    validator = jsonschema.Draft7Validator(schema)
    for name, text in EXAMPLES:
        with subtests.test(name):
            value, understood = data(text, tmp_path)
            assert understood, "an example of a rule is a spec that can be understood"
            validator.validate(value)


@pytest.mark.parametrize(
    "more",
    [
        "gpu: A100-80GB:2\n",
        "gpu: {type: L4, count: 2}\n",
        "gpu: none\n",
        "gpu: future-card-9\n",
        'python: "3.19"\n',
        'cuda: "19.9"\n',
        "cuda: auto\n",
        'packages: ["torch==2.13.*", {name: my-lib, version: ">=1"}]\n',
        "targets: {local: {kind: local, manager: uv}, c: {kind: colab, gpu: T4}}\n",
        "secrets: {A: {env: B}, C: {colab: D}}\n",
        "env: {A: b}\npaths: {out: /x}\nrequires: {ram: 8GiB}\n",
    ],
)
def test_it_takes_short_and_long_forms_and_values_it_does_not_know(
    schema: dict[str, Any], more: str, tmp_path: Path
) -> None:
    given = more.partition(":")[0]
    value, understood = data(
        "".join(line for line in BASE.splitlines(True) if not line.startswith(f"{given}:")) + more,
        tmp_path,
    )
    assert understood
    jsonschema.validate(value, schema, cls=jsonschema.Draft7Validator)


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace('"3.12"', "3.12"),
        BASE.replace('"3.12"', "[3]"),
        BASE.replace('"3.12"', '"three"'),
        BASE.replace('"3.12"', "null"),
        BASE.replace("L4", "4"),
        BASE.replace("L4", "[L4]"),
        BASE.replace("[torch]", "torch"),
        BASE.replace("[torch]", "[1]"),
        BASE.replace("[torch]", "{torch: 2}"),
        BASE.replace("[torch]", "[{version: 1}]"),
        BASE + "cuda: 12.8\n",
        BASE + "colour: blue\n",
        BASE + "env: {A: 1}\n",
        BASE + "env: [A]\n",
        BASE + "paths: {a: 1}\n",
        BASE + "training: {precision: int4}\n",
        BASE + "training: {batch: 4}\n",
        BASE + "training: {batch_size: '4'}\n",
        BASE + "targets: {local: {kind: moon}}\n",
        BASE + "targets: {local: {kind: local, project: x}}\n",
        BASE + "targets: {here: {}}\n",
        BASE + "platforms: [amiga]\n",
        BASE + "requires: {ram: 8}\n",
        BASE + "requires: {ram: many}\n",
        BASE + "secrets: {A: literal}\n",
        BASE + "apiVersion: provision/v9\n",
        "gpu: L4\npackages: [torch]\n",
        "- a\n- b\n",
    ],
)
def test_it_refuses_what_our_own_model_refuses(
    schema: dict[str, Any], text: str, tmp_path: Path
) -> None:
    value, understood = data(text, tmp_path)
    assert not understood
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, schema, cls=jsonschema.Draft7Validator)


def test_known_values_are_offered_and_others_are_allowed(schema: dict[str, Any]) -> None:
    for field, one in (("python", "3.12"), ("gpu", "L4"), ("cuda", "12.8")):
        known, free = schema["properties"][field]["anyOf"]
        assert one in known["enum"]
        assert "enum" not in free
