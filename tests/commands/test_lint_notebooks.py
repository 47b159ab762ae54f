"""`provision lint` of notebooks: formats, exit codes, fixes that change a cell only, bad files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from tests.rules.notebooks import to_notebook

ROOT = Path(__file__).parents[2]
CELLS = (
    "# %pip is not used here\n!pip install -q transformers==5.0.0 einops\n# %%\n"
    "from transformers import TrainingArguments\n"
    'args = TrainingArguments("out", evaluation_strategy="epoch", bf16=True)\n'
)
TOKEN = "hf_" + "canary" * 5


def lint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    return fork_server.run(
        [*fork_server.ARGV, "lint", *words],
        cwd=folder,
        env={**kept, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def write(folder: Path, text: str = CELLS, name: str = "train.ipynb", colab: str = "T4") -> Path:
    path = folder / name
    path.write_text(to_notebook(text, colab), encoding="utf-8")
    return path


def with_quickstart(folder: Path) -> None:
    for name in ("quickstart.yaml", "quickstart.lock"):
        (folder / name).write_bytes((ROOT / "specs" / name).read_bytes())


def test_findings_name_the_cell_its_line_and_column(tmp_path: Path) -> None:
    write(tmp_path)
    done = lint(tmp_path, "--output-format", "concise", "train.ipynb")
    assert done.returncode == 1
    assert [line.rpartition(": ")[0].split()[0] for line in done.stdout.splitlines()] == [
        "train.ipynb:cell",
        "train.ipynb:cell",
        "train.ipynb:cell",
    ]
    assert "train.ipynb:cell 2:2:33: error NTB005 " in done.stdout
    as_text = lint(tmp_path, "train.ipynb").stdout
    assert " --> train.ipynb:cell 2:2:33\n" in as_text
    assert "Found 1 error and 2 warnings. [*] 1 fixable with --fix." in as_text


def test_cells_are_in_their_order(tmp_path: Path) -> None:
    write(tmp_path, "# %%\n".join(["!pip install einops\n"] * 11))
    done = lint(tmp_path, "--output-format", "concise", "train.ipynb")
    numbers = [int(line.split(":")[1].removeprefix("cell ")) for line in done.stdout.splitlines()]
    assert numbers == list(range(1, 12))
    assert done.returncode == 0


def test_sarif_and_github_point_at_the_line_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    text = path.read_text()
    line = next(i for i, row in enumerate(text.split("\n"), 1) if "evaluation_strategy" in row)
    (run,) = json.loads(lint(tmp_path, "--output-format", "sarif", "train.ipynb").stdout)["runs"]
    (result,) = [one for one in run["results"] if one["ruleId"] == "NTB005"]
    place = result["locations"][0]["physicalLocation"]
    region = place["region"]
    start = region["charOffset"]
    assert place["artifactLocation"]["uri"] == "train.ipynb"
    assert region["startLine"] == line
    assert text[start : start + region["charLength"]] == "evaluation_strategy"
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["deletedRegion"] == region
    marks = [one["partialFingerprints"]["provisionPath/v1"] for one in run["results"]]
    assert len(set(marks)) == len(marks)
    done = lint(tmp_path, "--output-format", "github", "train.ipynb")
    assert f"::error file=train.ipynb,line={line},endLine={line}," in done.stdout


def test_json_has_findings_of_specs_and_notebooks(tmp_path: Path) -> None:
    write(tmp_path)
    with_quickstart(tmp_path)
    done = lint(tmp_path, "--output-format", "json", "train.ipynb", "quickstart.yaml")
    document = json.loads(done.stdout)
    assert document["summary"]["error"] == 1
    found = {one["id"]: one for one in document["diagnostics"]}
    assert found["NTB005"]["file"] == "train.ipynb:cell 2"
    assert found["NTB005"]["range"]["start"] == {"line": 2, "column": 33, "offset": 75}
    assert found["NTB005"]["fix"]["applies"] is True


def test_a_fix_changes_the_cell_and_keeps_every_other_byte(tmp_path: Path) -> None:
    with_quickstart(tmp_path)
    path = write(tmp_path, CELLS.replace("transformers==5.0.0", "transformers"))
    before = path.read_bytes().replace(b"\n", b"\r\n").replace(b'"metadata"', b'"metadata" ')
    before = b"\xef\xbb\xbf" + before + b"\r\n \t"
    path.write_bytes(before)
    path.chmod(0o640)
    done = lint(tmp_path, "--fix", "--spec", "quickstart.yaml", "train.ipynb")
    assert done.stderr == "fixed train.ipynb\n"
    after = path.read_bytes()
    assert after == before.replace(b"-q transformers", b"-q transformers==5.23.0").replace(
        b"evaluation_strategy", b"eval_strategy"
    )
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_diff_shows_cells_and_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, CELLS + f"key = '{TOKEN}'; a = TrainingArguments('o', no_cuda=True)\n")
    before = path.read_bytes()
    done = lint(tmp_path, "--diff", "train.ipynb")
    assert done.returncode == 1
    assert path.read_bytes() == before
    assert "--- train.ipynb:cell 2\n+++ train.ipynb:cell 2\n" in done.stderr
    assert "+key = '***'; a = TrainingArguments('o', use_cpu=True)\n" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif", "github"])
def test_a_secret_is_found_and_never_shown(tmp_path: Path, form: str) -> None:
    write(tmp_path, f"!pip install --index-url https://user:{TOKEN}@example.org/simple einops\n")
    done = lint(tmp_path, "--output-format", form, "train.ipynb")
    assert done.returncode == 1
    assert "NTB008" in done.stdout
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"cells": [', "the notebook is not valid JSON"),
        (b"[]", "is not a notebook"),
        (b'{"worksheets": [], "nbformat": 3}', "has notebook format 3; expected 4"),
        (b'{"cells": [], "x": "\xff"}', "is not valid UTF-8"),
        (b"", "the notebook is not valid JSON"),
        (b"[" * 100_000, "too many levels of nesting"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "bad.ipynb").write_bytes(raw)
    write(tmp_path)
    done = lint(tmp_path, "--output-format", "concise", "bad.ipynb", "train.ipynb")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "NTB005" in done.stdout


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(100 << 20)
    done = lint(tmp_path, "large.ipynb")
    assert done.returncode == 2
    assert "large.ipynb" in done.stderr


def test_a_lone_surrogate_and_odd_cells_are_read(tmp_path: Path) -> None:
    document = json.loads(to_notebook(CELLS))
    document["cells"][0]["source"] = ["x = '\ud800'\n", "!pip install einops\n"]
    document["cells"] += [{"cell_type": "code"}, {"cell_type": "code", "source": 3}, None]
    (tmp_path / "odd.ipynb").write_text(json.dumps(document))
    done = lint(tmp_path, "--output-format", "concise", "odd.ipynb")
    assert done.stdout.startswith("odd.ipynb:cell 1:2:14: warning NTB001 ")
    count = len(document["cells"])
    damaged = [line for line in done.stdout.splitlines() if "NTB013" in line]
    assert [line.partition(": ")[0] for line in damaged] == [
        f"odd.ipynb:cell {number}:1:1" for number in range(count - 2, count + 1)
    ]
    sarif = lint(tmp_path, "--output-format", "sarif", "odd.ipynb")
    assert json.loads(sarif.stdout)["runs"][0]["results"]


def test_a_spec_is_for_notebooks_and_has_no_errors(tmp_path: Path) -> None:
    with_quickstart(tmp_path)
    write(tmp_path)
    alone = lint(tmp_path, "--spec", "quickstart.yaml", "quickstart.yaml")
    assert alone.returncode == 2
    assert "--spec applies only to notebooks" in alone.stderr
    (tmp_path / "broken.yaml").write_text("gpu: none\npython: 3.10\npackages: []\n")
    broken = lint(tmp_path, "--spec", "broken.yaml", "train.ipynb")
    assert broken.returncode == 1
    assert "YML003" in broken.stdout + broken.stderr
    missing = lint(tmp_path, "--spec", "missing.yaml", "train.ipynb")
    assert missing.returncode == 2
    assert "missing.yaml" in missing.stderr


def test_notebooks_are_skipped_as_foreign(tmp_path: Path) -> None:
    write(tmp_path)
    with_quickstart(tmp_path)
    done = lint(tmp_path, "--skip-foreign", "train.ipynb", "quickstart.yaml")
    assert done.returncode == 0
    assert "skipped train.ipynb: it is a notebook, not a spec" in done.stderr
