"""render as people type it: what is written, what --check says, what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from tests.pytorch_rig import PyTorch
from tests.rig import Bench, small_spec

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/lock-restart"


@pytest.fixture
def golden(bench: Bench) -> Bench:
    """A project with the golden spec of two Colab targets, and its lock."""
    for name in ("spec.yaml", "spec.lock"):
        shutil.copy(GOLDEN / name, bench.folder / name)
    return bench


def rendered(bench: Bench, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = bench.run("render", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith("spec.yaml")
    }


def test_the_example_is_rendered_the_same_twice(
    bench: Bench, pytorch: PyTorch, tmp_path: Path
) -> None:
    shutil.copy(ROOT / "specs/hf-trainer.yaml", bench.folder)
    assert bench.run("lock", "hf-trainer.yaml", **pytorch.offline()).returncode == 0
    done = rendered(bench, "hf-trainer.yaml")
    assert "rendered, not verified" in done.stdout
    assert "open         hf-trainer.ipynb in Colab (File > Upload notebook)" in done.stdout
    assert "version 2026.07, T4" in done.stdout
    assert "then         provision report add " in done.stdout
    first = files(bench.folder)
    assert {"hf-trainer.colab.py", "hf-trainer.ipynb"} <= set(first)
    nbformat.validate(nbformat.read(bench.folder / "hf-trainer.ipynb", 4))
    page = (ROOT / "docs/how-to/colab.md").read_text(encoding="utf-8")
    documented = int(page.partition("A cell is about ")[2].partition(" KB")[0])
    assert len(first["hf-trainer.colab.py"]) == pytest.approx(documented * 1000, rel=0.1)
    again = rendered(bench, "hf-trainer.yaml")
    assert "hf-trainer.colab.py is up to date" in again.stdout
    assert files(bench.folder) == first
    elsewhere = bench.folder / "elsewhere"
    rendered(bench, "hf-trainer.yaml", "--out", "elsewhere")
    assert files(elsewhere) == {
        name: content for name, content in first.items() if name.endswith((".colab.py", ".ipynb"))
    }
    rendered(bench, "hf-trainer.yaml", "--check")


def test_several_targets_have_files_of_their_own(golden: Bench) -> None:
    rendered(golden, "spec.yaml")
    names = {"spec.apart.colab.py", "spec.apart.ipynb", "spec.colab.colab.py", "spec.colab.ipynb"}
    assert names <= set(files(golden.folder))
    state = json.loads((golden.own / "state.json").read_text())
    assert set(state["resources"]) == {"spec/apart#notebook", "spec/colab#notebook"}
    done = golden.run("destroy", "spec.yaml", "--all", "--yes")
    assert done.returncode == 0, done.stderr
    assert not names & set(files(golden.folder))


def test_one_target_can_be_named(golden: Bench) -> None:
    rendered(golden, "spec.yaml", "--target", "apart")
    assert {name for name in files(golden.folder) if name.endswith((".py", ".ipynb"))} == {
        "spec.apart.colab.py",
        "spec.apart.ipynb",
    }


def test_check_names_what_differs_and_the_command_that_writes_it(golden: Bench) -> None:
    absent = rendered(golden, "spec.yaml", "--check", code=1)
    assert "spec.colab.ipynb does not match the spec and the lock" in absent.stdout
    assert "update them with: provision render spec.yaml" in absent.stdout
    assert not golden.own.exists()
    rendered(golden, "spec.yaml")
    assert (
        "spec.colab.ipynb matches the spec and the lock"
        in rendered(golden, "spec.yaml", "--check").stdout
    )
    cell = golden.folder / "spec.colab.colab.py"
    cell.write_text(cell.read_text().replace("CONTINUE_ANYWAY = False", "CONTINUE_ANYWAY = True"))
    before = files(golden.folder)
    edited = rendered(golden, "spec.yaml", "--check", "--target", "colab", code=1)
    assert "spec.colab.colab.py does not match the spec and the lock" in edited.stdout
    assert "spec.colab.ipynb matches the spec and the lock" in edited.stdout
    assert "update it with: provision render spec.yaml --target colab" in edited.stdout
    assert files(golden.folder) == before


@pytest.mark.long
def test_check_sees_another_spec(golden: Bench) -> None:
    rendered(golden, "spec.yaml")
    path = golden.folder / "spec.yaml"
    path.write_text(path.read_text() + 'env: {A: "b"}\n')
    rendered(golden, "spec.yaml", "--check", code=1)
    rendered(golden, "spec.yaml")
    rendered(golden, "spec.yaml", "--check")


def test_as_json(golden: Bench) -> None:
    document = json.loads(
        rendered(golden, "spec.yaml", "--target", "colab", "--output-format", "json").stdout
    )
    assert (document["version"], document["check"], document["holds"]) == (1, False, True)
    (target,) = document["targets"]
    assert target["files"] == ["spec.colab.colab.py", "spec.colab.ipynb"] == target["differing"]
    assert len(target["nonce"]) == 32
    assert target["link"] is None
    (golden.folder / "spec.colab.ipynb").unlink()
    checked = json.loads(
        rendered(
            golden, "spec.yaml", "--target", "colab", "--check", "--output-format", "json", code=1
        ).stdout
    )
    assert (checked["holds"], checked["targets"][0]["differing"]) == (False, ["spec.colab.ipynb"])


def test_the_link_is_told_where_the_remote_is_known_and_stands_in_no_file(golden: Bench) -> None:
    plain = files_after(golden)
    (golden.folder / ".git").mkdir()
    (golden.folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (golden.folder / ".git/config").write_text(
        '[remote "origin"]\n\turl = git@github.com:me/repo.git\n'
    )
    done = rendered(golden, "spec.yaml", "--target", "colab")
    link = "https://colab.research.google.com/github/me/repo/blob/main/spec.colab.ipynb"
    assert f"open         {link}" in done.stdout
    assert files_after(golden) == plain


def files_after(bench: Bench) -> dict[str, bytes]:
    rendered(bench, "spec.yaml")
    return files(bench.folder)


def test_the_payload_apart_from_the_cell(golden: Bench) -> None:
    url = "https://example.com/spec.payload"
    done = rendered(golden, "spec.yaml", "--target", "colab", "--payload-url", url)
    payload = golden.folder / "spec.colab.payload"
    assert (
        f"upload spec.colab.payload to {url}, from where the cell downloads it (sha256 "
        in done.stdout
    )
    assert url in (golden.folder / "spec.colab.colab.py").read_text()
    assert len((golden.folder / "spec.colab.colab.py").read_text()) < 10_000
    rendered(golden, "spec.yaml", "--target", "colab", "--payload-url", url, "--check")
    assert (
        "does not match"
        in rendered(golden, "spec.yaml", "--target", "colab", "--check", code=1).stdout
    )
    payload.write_bytes(payload.read_bytes()[:-1])
    assert (
        "spec.colab.payload does not match"
        in rendered(
            golden, "spec.yaml", "--target", "colab", "--payload-url", url, "--check", code=1
        ).stdout
    )
    golden.run("destroy", "spec.yaml", "--all", "--yes")
    assert [path.name for path in golden.folder.iterdir() if path.suffix == ".payload"] == [
        "spec.colab.payload"
    ]  # it was changed


@pytest.mark.parametrize(
    "url",
    [
        "example.com/x",
        "http://example.com/x",
        "file:///etc/passwd",
        "https://example.com/a b",
        'https://x"/',
        "https://x\n!ls",
    ],
)
def test_an_address_that_no_payload_can_be_fetched_from_is_refused(url: str, golden: Bench) -> None:
    done = rendered(golden, "spec.yaml", "--payload-url", url, code=2)
    assert "is not a valid URL for the payload" in done.stderr
    assert not list(golden.folder.glob("*.ipynb"))


def test_without_a_lock_that_holds_nothing_is_written(golden: Bench) -> None:
    (golden.folder / "spec.lock").unlink()
    missing = rendered(golden, "spec.yaml", code=1)
    assert "provision lock spec.yaml" in missing.stderr
    shutil.copy(GOLDEN / "spec.lock", golden.folder)
    path = golden.folder / "spec.yaml"
    path.write_text(path.read_text().replace("numpy>=2.3", "numpy>=2.4"))
    stale = rendered(golden, "spec.yaml", "--check", code=1)
    assert "is out of date" in stale.stderr
    assert "provision lock spec.yaml" in stale.stderr
    assert not list(golden.folder.glob("*.ipynb"))


def test_what_a_runtime_cannot_give_is_refused_at_its_place(golden: Bench) -> None:
    path = golden.folder / "spec.yaml"
    path.write_text(path.read_text() + 'cuda_toolkit: "12.8"\n')
    done = rendered(golden, "spec.yaml", code=1)
    assert "installing a CUDA toolkit on a runtime is not supported yet" in " ".join(
        done.stderr.split()
    )
    assert "spec.yaml:10:15" in done.stderr
    assert not list(golden.folder.glob("*.ipynb"))


def test_targets_of_other_kinds_have_no_notebook(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="targets: {local: {kind: local}, there: {kind: local}}\n"))
    none = rendered(bench, "spec.yaml", code=2)
    assert "the spec has no target of kind colab" in none.stderr
    named = rendered(bench, "spec.yaml", "--target", "local", code=2)
    assert "target `local` is of kind local, which has no notebook" in named.stderr
    wrong = rendered(bench, "spec.yaml", "--target", "nowhere", code=2)
    assert "the spec has no target `nowhere`" in wrong.stderr


def test_files_of_someone_else_stay(golden: Bench) -> None:
    (golden.folder / "spec.colab.ipynb").write_text('{"cells": []}')
    done = rendered(golden, "spec.yaml", "--target", "colab", code=2)
    assert "spec.colab.ipynb exists and was not written by provision" in done.stderr
    assert (golden.folder / "spec.colab.ipynb").read_text() == '{"cells": []}'


def test_a_folder_that_cannot_be_written_is_said_so(golden: Bench) -> None:
    (golden.folder / "taken").write_text("")
    done = rendered(golden, "spec.yaml", "--out", "taken/x", code=2)
    assert "taken" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plan_tells_what_the_notebook_will_find(golden: Bench) -> None:
    done = golden.run("plan", "spec.yaml", "--target", "colab")
    assert done.returncode == 0, done.stderr
    assert "+    notebook spec.colab.ipynb and cell spec.colab.colab.py" in done.stdout
    for line in (
        "runtime: 2026.07, Python 3.12.13",
        "machine: T4, 1.19 compute units per hour",
        "changed: numpy 2.0.2 to 2.5.5",
        "restart needed: yes (numpy)",
    ):
        assert line in done.stdout
    assert not golden.own.exists()


def test_neither_hash_seed_nor_clock_nor_language_decides_a_byte(golden: Bench) -> None:
    for folder, variables in (
        ("one", {"PYTHONHASHSEED": "1", "TZ": "UTC"}),
        ("two", {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    ):
        assert golden.run("render", "spec.yaml", "--out", folder, **variables).returncode == 0
    assert files(golden.folder / "one") == files(golden.folder / "two")
    assert len(files(golden.folder / "one")) == 4


def test_what_no_browser_runs_is_written_and_not_recorded(bench: Bench) -> None:
    colab = "targets: {colab: {kind: colab, isolation: venv, via: colab-cli}}\n"
    bench.spec(small_spec("alpha", extra=colab))
    assert bench.run("lock", "spec.yaml").returncode == 0
    rendered(bench, "spec.yaml")
    assert (bench.folder / "spec.ipynb").exists()
    assert not (bench.own / "state.json").exists()


def test_cells_of_ones_own_stay_when_it_is_rendered_again(golden: Bench) -> None:
    rendered(golden, "spec.yaml", "--target", "colab")
    path = golden.folder / "spec.colab.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"].append(
        {
            "cell_type": "code",
            "execution_count": None,
            "id": "mine",
            "metadata": {},
            "outputs": [],
            "source": ["train()"],
        }
    )
    path.write_text(json.dumps(notebook))
    rendered(golden, "spec.yaml", "--target", "colab", "--check")
    spec = golden.folder / "spec.yaml"
    spec.write_text(spec.read_text() + 'env: {A: "b"}\n')
    rendered(golden, "spec.yaml", "--target", "colab")
    assert json.loads(path.read_text())["cells"][-1]["source"] == ["train()"]
    done = golden.run("destroy", "spec.yaml", "--all", "--yes")
    assert "spec.colab.ipynb has changed since provision wrote it, so it is kept" in done.stderr
    assert json.loads(path.read_text())["cells"][-1]["source"] == ["train()"]
    assert not (golden.folder / "spec.colab.colab.py").exists()
