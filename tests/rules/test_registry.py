"""The list of rules and the folder of rules are the same, and each rule is whole."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from provision import rules, source
from provision.agent.probe.checks.driver import VRAM_SHARE
from provision.agent.probe.checks.host import RAM_SHARE
from provision.kinds import REGISTRY
from provision.rules import RULES, render_rule_page, run_rules
from provision.rules.memory import ram_beyond_machine, vram_beyond_card
from provision.rules.registry import load_rules
from tests.rules.conftest import Ask

FOLDER = Path(rules.__file__).parent
ALL_RULE_FILES = sorted(
    path for path in FOLDER.glob("*/*.py") if "\nRULE = " in path.read_text(encoding="utf-8")
)
RULE_FILES = [path for path in ALL_RULE_FILES if path.parent.name != "notebook"]
"""Those about specs; test_notebook_examples.py has the others."""
AREAS = {
    "SPC",
    "PKG",
    "PYT",
    "CUD",
    "GPU",
    "SEC",
    "REF",
    "MEM",
    "GCP",
    "IMG",
    "NET",
    "CST",
    "TRN",
    "ENV",
}


def _module(path: Path) -> str:
    return f"provision.rules.{path.parent.name}.{path.stem}"


def test_every_rule_file_is_in_the_list() -> None:
    assert {_module(path) for path in RULE_FILES} == {rule.check.__module__ for rule in RULES}


def test_areas_and_the_modules_that_they_name_exist() -> None:
    folders = [path.parent for path in FOLDER.glob("*/__init__.py")]
    areas = {f"provision.rules.{folder.name}" for folder in folders}
    assert {area for kind in REGISTRY.kinds for area in kind.rules} < areas
    for folder in folders:
        area = import_module(f"provision.rules.{folder.name}")
        modules = {path.stem for path in RULE_FILES if path.parent == folder}
        assert getattr(area, "NVIDIA_ONLY", frozenset()) <= modules


def test_no_rule_file_imports_another(subtests: pytest.Subtests) -> None:
    """What two rules share stands in a room of its own, so that a rule can be moved or removed
    alone.
    """
    modules = {_module(path) for path in ALL_RULE_FILES}
    for path in ALL_RULE_FILES:
        with subtests.test(path.stem):
            named: set[str] = set()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    named |= {
                        node.module or "",
                        *(f"{node.module}.{alias.name}" for alias in node.names),
                    }
                elif isinstance(node, ast.Import):
                    named |= {alias.name for alias in node.names}
            assert named & modules == set()


def test_ids_and_names_are_unique_and_nobody_elses() -> None:
    ids, names = [rule.id for rule in RULES], [rule.name for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert len(set(names)) == len(names)
    assert not set(ids) & {finding.id for finding in source.FINDING_KINDS}
    assert not set(names) & {finding.name for finding in source.FINDING_KINDS}


def test_a_rule_is_whole(subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.id):
            assert re.fullmatch(r"[A-Z]{3}\d{3}", rule.id)
            assert rule.id[:3] in AREAS
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
            package, _, module = rule.check.__module__.rpartition(".")
            name = rule.name.replace("-", "_")
            assert module == (name.removeprefix("colab_") if package.endswith(".colab") else name)
            assert rule.summary.endswith(".")
            assert all(text.strip() for text in rule.sources)
            assert rule.sources
            assert rule.bad
            assert rule.good


def test_the_page_has_its_sections(subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.id):
            page = render_rule_page(rule)
            headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
            assert headings == [
                "What it does",
                "Why",
                "How to fix",
                "Found in",
                "Not found in",
                "Sources",
            ]
            assert page.startswith(f"# {rule.id} {rule.name}\n\nSeverity: {rule.severity.value}\n")
            assert all(source in page for source in rule.sources)
            assert all(example.spec.strip() in page for example in (*rule.bad, *rule.good))


def test_importing_the_rules_takes_no_yaml() -> None:
    program = (
        "import sys, provision.rules; print(sorted({'yaml', 'click', 'rich', 'jinja2', "
        "'provision.source'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.long(after=2)
@pytest.mark.thorough
def test_rules_that_are_not_loaded_for_a_spec_find_nothing_in_it(ask: Ask) -> None:
    """Or a spec that they concern would not be checked: every example goes before them."""
    skipped = dict.fromkeys(["nvidia", "workbench", "colab"], 0)
    for example in [example for rule in RULES for example in (*rule.bad, *rule.good)]:
        context = ask(example.spec, example.resolved).case
        kinds = frozenset(target.kind for target in context.targets)
        nvidia = any(device.is_nvidia for device in context.devices)
        loaded = {rule.id for rule in load_rules(kinds, nvidia=nvidia)}
        left_out = tuple(rule for rule in RULES if rule.id not in loaded)
        assert run_rules(context, left_out) == (), example.spec
        skipped["nvidia"] += not nvidia
        for name in ("workbench", "colab"):
            skipped[name] += REGISTRY.find(name) not in kinds
    assert all(number > 50 for number in skipped.values())


def test_only_what_concerns_a_spec_is_imported() -> None:
    program = """if True:
        import sys
        from provision.kinds import REGISTRY
        from provision.rules.registry import load_rules
        print(len(load_rules(frozenset({REGISTRY.find("local")}), nvidia=False)))
        print(*(name for name in sys.modules if name.startswith("provision.rules.")))
        """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    number, loaded = done.stdout.splitlines()
    rule_modules = {_module(path) for path in ALL_RULE_FILES} & set(loaded.split())
    assert not any(module.startswith("provision.rules.notebook") for module in loaded.split())
    assert int(number) < 100
    assert "provision.rules.packages.trainer_needs_accelerate" in rule_modules
    for module in rule_modules:
        area, name = module.rsplit(".", 1)
        assert not any(area in kind.rules for kind in REGISTRY.kinds)
        assert name not in getattr(import_module(area), "NVIDIA_ONLY", ())


def test_shares_are_those_of_the_checks_on_the_device() -> None:
    assert RAM_SHARE.value == ram_beyond_machine.USABLE_RAM_SHARE
    assert vram_beyond_card.USABLE_VRAM_SHARE == VRAM_SHARE
