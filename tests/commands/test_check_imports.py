"""provision check: imports of modules that a notebook does not bring along."""

from __future__ import annotations

from tests.rig import Bench
from tests.rules.notebooks import to_notebook

PLACES = ("--on", "colab-t4", "--on", "workbench-t4", "--output-format", "concise")


def test_imports_that_cannot_work_are_reported(bench: Bench) -> None:
    cells = "import bitsandbytes\n# %%\nfrom mytrain import make_model\n# %%\nimport torch\n"
    (bench.folder / "n.ipynb").write_text(to_notebook(cells), encoding="utf-8")

    alone = bench.run("check", "n.ipynb", *PLACES)
    (bench.folder / "mytrain.py").write_text("make_model = print\n", encoding="utf-8")
    with_module = bench.run("check", "n.ipynb", *PLACES)

    assert alone.returncode == 1
    assert "n.ipynb:cell 1:1:1: error NTB015 bitsandbytes" in alone.stdout
    assert "n.ipynb:cell 2:1:1: warning NTB018 mytrain" in alone.stdout
    assert "NTB015" in with_module.stdout
    assert "NTB018" not in with_module.stdout


def test_lint_reports_the_same_for_a_spec_without_code(bench: Bench) -> None:
    (bench.folder / "n.ipynb").write_text(to_notebook("import mytrain\n"), encoding="utf-8")
    head = "apiVersion: provision/v1\nname: t\ngpu: T4\npython: '3.13'\npackages: []\n"
    targets = "targets: {colab: {kind: colab}}\n"
    (bench.folder / "a.yaml").write_text(head + targets, encoding="utf-8")
    (bench.folder / "b.yaml").write_text(f"{head}code: src\n{targets}", encoding="utf-8")

    bare = bench.run("lint", "n.ipynb", "--spec", "a.yaml")
    with_code = bench.run("lint", "n.ipynb", "--spec", "b.yaml")

    assert "NTB018" in bare.stdout, bare
    assert "NTB018" not in with_code.stdout
