"""A kind is one declaration, one driver, its effects, one folder of rules and a registry line."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision import source
from provision.adapters import RealSystem
from provision.facts import load_facts
from provision.kinds import REGISTRY as OWN_REGISTRY
from provision.kinds import registry_in_use
from provision.rules import LintContext, load_registered_rules, render_rule_page, run_rules
from tests.folder_kind import REGISTRY

FOLDER = Path(__file__).parent
TESTS = ("conftest.py", "server.py")
"""What is not of the kind: the outside world, and the project of the tests."""


def test_a_kind_is_a_declaration_a_driver_effects_rules_and_a_line() -> None:
    files = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py")}
    assert {name for name in files if name not in TESTS and not name.startswith("test_")} == {
        "__init__.py",
        "adapter.py",
        "driver.py",
        "kind.py",
        "rules/__init__.py",
        "rules/too_many_ranks.py",
    }
    line = "replace(OWN_REGISTRY, kinds=(*OWN_REGISTRY.kinds, Folder()))"
    assert line in (FOLDER / "__init__.py").read_text()


def test_no_source_names_the_kind() -> None:
    package = Path(source.__file__).parents[1]
    assert not [path for path in package.rglob("*.py") if "folder_kind" in path.read_text()]


def test_the_rules_are_those_of_the_package_and_of_the_kind(tmp_path: Path) -> None:
    token = registry_in_use.set(REGISTRY)
    try:
        rules = {rule.id: rule for rule in load_registered_rules()}
        registry_in_use.set(OWN_REGISTRY)
        own = {rule.id for rule in load_registered_rules()}
        registry_in_use.set(REGISTRY)
        assert set(rules) - own == {"FLD001"}
        rule, findings = rules["FLD001"], []
        assert "## How to fix" in render_rule_page(rule)
        for example in (*rule.bad, *rule.good):
            path = tmp_path / "spec.yaml"
            path.write_text(example.spec)
            (document,) = source.read_spec_file(path, RealSystem())
            spec, problems = source.validate_source(document)
            assert spec is not None, problems
            found = run_rules(LintContext(spec, document, load_facts()))
            findings.append([finding.id for finding in found])
        assert findings == [["FLD001"], []]
    finally:
        registry_in_use.reset(token)


@pytest.mark.parametrize("kind", REGISTRY.kinds, ids=lambda kind: kind.name)
def test_what_a_declaration_names_exists(kind: object) -> None:
    fields = kind.model.model_fields  # type: ignore[attr-defined]
    assert set(kind.lock_fields) <= set(fields)  # type: ignore[attr-defined]
