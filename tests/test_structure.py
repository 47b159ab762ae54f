"""support/structure.py: each figure exceeds its bound on a small tree made for it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
CLEAN = {
    "commands/apply.py": '"""Applies a plan."""\n\nfrom madeup.kinds import base\n\nkind = base\n',
    "kinds/base.py": '"""Declaration of a kind."""\n\n\nclass Kind:\n    """A kind."""\n',
    "targets/colab/plan.py": '"""Plans of Colab."""\n\n\nclass Notebook:\n    """A notebook."""\n',
}
LONG_FUNCTION = "def run():\n" + "    step()\n" * 60
CASES: list[tuple[str, Mapping[str, str]]] = [
    ("syntax nodes", {"commands/table.py": "rows = [" + "1, " * 290_000 + "]\n"}),
    ("syntax nodes per code line", {"commands/table.py": "rows = [" + "1, " * 100 + "]\n"}),
    ("conditional expressions per 100", {"commands/plan.py": "size = 1 if small else 2\n"}),
    ("nested conditional", {"commands/plan.py": "size = 1 if small else 2 if large else 3\n"}),
    ("functions over 60", {"commands/plan.py": LONG_FUNCTION}),
    ("files over 400", {"commands/plan.py": "step()\n" * 401}),
    (
        "import cycles",
        {"lock/a.py": "from madeup.lock import b\n", "lock/b.py": "from madeup.lock.a import x\n"},
    ),
    (
        "import cycles",
        {"lock/a.py": "import madeup.rules.b\n", "rules/b.py": "from ..lock.a import x\n"},
    ),
    ("branches on a kind", {"cli/plan.py": 'colab = kind == "colab"\n'}),
    ("branches on a kind", {"views/plan.py": 'match kind:\n    case "vertex-job":\n        x\n'}),
    ("branches on a kind", {"lock/plan.py": 'names = {"local": 1}\n'}),
    ("branches on a kind", {"lock/plan.py": 'remote = kind in {"workbench"}\n'}),
    ("branches on a kind", {"lock/plan.py": 'driver = drivers["colab-enterprise"]\n'}),
    ("branches on a kind", {"verification/plan.py": "from madeup.targets import colab\n"}),
    ("branches on a kind", {"commands/plan.py": "import madeup.targets.colab.plan as plan\n"}),
    ("branches on a kind", {"commands/plan.py": "colab = isinstance(part, plan.Notebook)\n"}),
    (
        "branches on a kind",
        {
            "kinds/models.py": "class LocalTarget(_Target): ...\n",
            "commands/plan.py": "match target:\n    case models.LocalTarget():\n        x\n",
        },
    ),
    ("class names defined", {"lock/a.py": "class Lock: ...\n", "rules/a.py": "class Lock: ...\n"}),
    ("messages and help", {"cli/a.py": 'hint = "the lock is no lock of ours"\n'}),
    ("forbidden phrases", {"lock/a.py": '"""What the lock holds."""\n' * 51}),
    ("forbidden phrases", {"lock/a.py": "# where there is no lock, the caller is told\n" * 51}),
]


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    """The script, imported with the search path that it has as a program."""
    folder = str(ROOT / "support")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("structure")
    finally:
        sys.path.remove(folder)


def exceeded(structure: ModuleType, tmp_path: Path, files: Mapping[str, str]) -> list[str]:
    """Return the labels of the figures that exceed their bound on a tree."""
    source = tmp_path / "madeup"
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    figures = structure.measure_source(structure.read_tree(source))
    return [figure.label for figure in figures if figure.is_exceeded]


def test_a_clean_tree_is_within_all_bounds(structure: ModuleType, tmp_path: Path) -> None:
    assert exceeded(structure, tmp_path, CLEAN) == []


@pytest.mark.parametrize(("label", "files"), CASES)
def test_a_figure_exceeds_its_bound(
    structure: ModuleType, tmp_path: Path, label: str, files: Mapping[str, str]
) -> None:
    labels = exceeded(structure, tmp_path, {**CLEAN, **files})
    assert any(text.startswith(label) for text in labels), labels


def test_every_figure_is_shown_to_exceed_its_bound(structure: ModuleType) -> None:
    figures = structure.measure_source(())
    assert [
        figure.label
        for figure in figures
        if not any(figure.label.startswith(label) for label, _ in CASES)
    ] == []


def test_kinds_may_be_used_elsewhere(structure: ModuleType, tmp_path: Path) -> None:
    files = {"kinds/registry.py": 'names = {"local": 1}\n', "targets/x.py": 'y = z == "colab"\n'}
    assert exceeded(structure, tmp_path, {**CLEAN, **files}) == []


def test_common_and_private_class_names_may_repeat(structure: ModuleType, tmp_path: Path) -> None:
    text = "class Options: ...\nclass Result: ...\nclass _Reader: ...\n"
    files = {"lock/a.py": text, "rules/a.py": text}
    assert exceeded(structure, tmp_path, {**CLEAN, **files}) == []


def test_only_files_whose_functions_are_called_count(structure: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "traced"
    source.mkdir()
    (source / "unused.py").write_text("def unused():\n    pass\n")
    (source / "used.py").write_text("def used():\n    pass\n")
    (source / "main.py").write_text(
        "from traced import unused, used\n\n\ndef main(arguments):\n    used.used()\n"
    )
    files = structure.entered_files(
        source,
        "traced.main",
        folder=tmp_path,
        environment={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert sorted(files) == ["main.py", "used.py"]


OPEN = {"syntax nodes"}
"""Figures of the sources that still exceed their bounds."""


def test_the_sources_stay_within_the_other_bounds(structure: ModuleType) -> None:
    figures = structure.measure_source(structure.read_tree(ROOT / "src/provision"))
    exceeded = [figure for figure in figures if figure.is_exceeded]
    assert [figure for figure in exceeded if figure.label not in OPEN] == []
