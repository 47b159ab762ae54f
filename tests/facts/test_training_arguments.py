"""The table of Trainer's arguments: it fits the releases that were read, and the script that writes
it reads a class as it should.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.version import Version

from provision.facts import load_facts
from provision.facts.schema_packages import SAME_RELEASE
from provision.facts.versions import parse_specifiers
from provision.rules.training.trainer_arguments import find_successor, is_in_release

ROOT = Path(__file__).parents[2]
FACTS = load_facts()
READ = FACTS.arguments_read


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "read_training_arguments", ROOT / "support" / "read_training_arguments.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_releases_stand_in_order_and_reach_as_far_as_the_table_of_transformers() -> None:
    assert [Version(release) for release in READ] == sorted(Version(release) for release in READ)
    assert READ[0] == FACTS.transformers[0].first
    assert READ[-1] == FACTS.transformers[-1].last


def test_rows_name_releases_that_were_read_and_arguments_that_exist() -> None:
    for row in FACTS.arguments.values():
        assert {row.first, row.last, row.deprecated_since} - {""} <= set(READ), row.argument
        assert not row.replaced_by or row.replaced_by in FACTS.arguments, row.argument
        assert row.replaced_by or not row.renamed, row.argument
    for optimizer in FACTS.optimizer_names.values():
        assert {optimizer.first, optimizer.last} - {""} <= set(READ), optimizer.optimizer


def test_an_argument_is_there_between_its_ends_and_unknown_beside_them() -> None:
    row = FACTS.arguments["eval_strategy"]
    assert [
        is_in_release(FACTS, row, release)
        for release in ("4.40.2", "4.41.0", "4.41.2", READ[-1], f"{READ[-1]}.1")
    ] == [False, None, True, True, None]
    row = FACTS.arguments["evaluation_strategy"]
    assert [
        is_in_release(FACTS, row, release) for release in ("4.50.3", "4.51.0", "4.51.3", "99.0")
    ] == [True, None, False, False]


def test_a_successor_is_followed_to_one_that_is_there() -> None:
    assert find_successor(FACTS, FACTS.arguments["evaluation_strategy"], "5.23.0") == (
        "eval_strategy",
        True,
    )
    assert find_successor(FACTS, FACTS.arguments["fp16_backend"], "4.57.6") == (
        "half_precision_backend",
        True,
    )
    assert find_successor(FACTS, FACTS.arguments["fp16_backend"], "5.23.0") == (None, False)
    assert find_successor(FACTS, FACTS.arguments["group_by_length"], "5.23.0") == (
        "train_sampling_strategy",
        False,
    )


def test_undeclared_needs_are_specifiers_of_other_packages() -> None:
    for row in FACTS.undeclared:
        assert row.specifier == SAME_RELEASE or parse_specifiers(row.specifier)
        assert row.of != row.package
        assert row.severity in ("error", "warning", "info")
        assert not row.first or not row.last or Version(row.first) <= Version(row.last)


def test_groups_and_trackers_name_packages_once() -> None:
    for group in FACTS.one_of:
        assert len(set(group.packages)) == len(group.packages) > 1
    assert {name for row in FACTS.platforms.values() for name in row.platforms} <= {
        "linux-x86_64",
        "linux-aarch64",
        "macos-arm64",
        "windows-x86_64",
    }


CLASS = """
class TrainingArguments:
    framework = "pt"
    output_dir: str = field(default=None)
    old: bool = field(default=False, metadata={"help": "Deprecated. Use `new` instead"})
    new: bool = False
    older: bool = field(default=False, metadata={"help": "What it does."})
    _n_gpu: int = field(init=False)
    both: str = field(default="x", metadata={"help": "Pass a string here; deprecated forms as `list` too."})

    def __post_init__(self):
        warnings.warn("using `--older` is deprecated and will be removed. Use `--new` instead")
        warnings.warn("using `Enum` for `both` is deprecated")
"""  # noqa: E501


def test_the_script_reads_fields_and_what_their_text_says() -> None:
    script = _script()
    (parsed,) = ast.parse(CLASS).body
    fields = dict(script.fields_of(parsed))
    assert list(fields) == ["output_dir", "old", "new", "older", "both"]
    warned = script.deprecations(parsed)
    assert set(warned) == {"older"}
    assert script.successor("older", warned["older"], set(fields)) == "new"
    assert script.successor("old", fields["old"], set(fields)) == "new"
    with pytest.raises(SystemExit, match="its form has changed"):
        script.add({}, "9.9", parsed)


def test_an_argument_that_went_and_came_back_is_refused() -> None:
    script = _script()
    with pytest.raises(SystemExit, match="went and came back"):
        script.row("argument", "x", script.Argument(["1.0", "3.0"]), ["1.0", "2.0", "3.0"])
    assert (
        script.row("argument", "x", script.Argument(["2.0"]), ["1.0", "2.0", "3.0"])
        == '  - {argument: x, first: "2.0", last: "2.0"}'
    )
