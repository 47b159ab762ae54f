"""provision why: each documented error is answered, and an unknown one is said to be unknown."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.checks import CHECKS
from provision.facts.lazy_tables import load_symptoms
from provision.rules import RULES
from tests import fork_server

TEXTS = Path(__file__).parents[1] / "symptoms"
RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
SPEC = """apiVersion: provision/v1
name: mine
gpu: T4
cuda: "12.8"
python: "3.12"
packages: [torch==2.11.*, "transformers>=5.13"]
training: {precision: bf16}
targets: {colab: {kind: colab, runtime: "2026.07"}}
"""


def run(*words: str, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        input=text,
    )


def told(*words: str, cwd: Path, text: str = "") -> list[dict[str, Any]]:
    done = run("why", *words, "--output-format", "json", cwd=cwd, text=text)
    assert done.returncode in (0, 1), done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["explanations"]
    assert done.returncode == (0 if found else 1)
    return found


@pytest.mark.parametrize("path", sorted(TEXTS.glob("*.txt")), ids=lambda path: path.stem)
def test_each_text_has_its_symptom(path: Path, tmp_path: Path) -> None:
    found = told(str(path), cwd=tmp_path)

    assert found[0]["id"] == path.stem
    assert found[0]["line"] in path.read_text()
    assert found[0]["means"]
    assert found[0]["helps"]
    assert found[0]["source"]


@pytest.mark.parametrize(
    "path", sorted((TEXTS / "unknown").glob("*.txt")), ids=lambda path: path.stem
)
def test_a_text_without_a_symptom_is_said_to_have_none(path: Path, tmp_path: Path) -> None:
    done = run("why", str(path), cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout.startswith("no known error found in this text")


def test_rules_and_checks_of_symptoms_exist() -> None:
    rules, checks = {rule.id for rule in RULES}, {check.id for check in CHECKS}
    assert {name for symptom in load_symptoms() for name in symptom.rules} <= rules
    assert {name for symptom in load_symptoms() for name in symptom.checks} <= checks


def test_a_report_tells_which_cause_is_true(tmp_path: Path) -> None:
    text = "ValueError: numpy.dtype size changed, may indicate binary incompatibility"
    (broken,) = told("-", "--report", str(RECORDED / "numpy-abi.json"), cwd=tmp_path, text=text)
    (whole,) = told("-", "--report", str(RECORDED / "quickstart.json"), cwd=tmp_path, text=text)

    assert broken["fits"]
    assert {"P02", "P04"} <= {check["id"] for check in broken["checks"]}
    assert not whole["fits"]


def test_a_spec_tells_which_cause_is_true_and_comes_first(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC)
    text = (
        "ValueError: Your setup doesn't support bf16/gpu.\nlater:\nRuntimeError: Too many open "
        "files\n"
    )

    first, second = told("-", cwd=tmp_path, text=text)
    assert (first["id"], second["id"]) == (
        "worker-files",
        "bf16-unsupported",
    )  # what is said last ended the program

    first, second = told("-", "--spec", "mine.yaml", cwd=tmp_path, text=text)
    assert (first["id"], first["fits"], second["fits"]) == ("bf16-unsupported", True, False)
    assert [finding["id"] for finding in first["findings"]] == ["GPU004"]


def test_fix_edits_what_explains_the_error_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC)

    done = run(
        "why",
        "-",
        "--spec",
        "mine.yaml",
        "--fix",
        cwd=tmp_path,
        text="ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`",
    )

    assert done.returncode == 0
    changed = (tmp_path / "mine.yaml").read_text()
    assert "transformers[torch]>=5.13" in changed or "accelerate" in changed
    assert "precision: bf16" in changed  # another finding, of another error


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ModuleNotFoundError: No module named 'peft'", "peft"),
        ("ModuleNotFoundError: No module named 'sklearn'", "scikit-learn"),
        ("ModuleNotFoundError: No module named 'google.protobuf'", "protobuf"),
        ("ModuleNotFoundError: No module named 'google.cloud.storage'", "google-cloud-storage"),
        ("ModuleNotFoundError: No module named 'google.auth.transport'", "google-auth"),
        ("ImportError: peft>=0.18.0 is required", "peft>=0.18.0"),
        (
            (
                "The 'deepspeed>=0.9.3' distribution was not found and is required by this "
                "application."
            ),
            "deepspeed>=0.9.3",
        ),
        (
            "RuntimeError: WandbCallback requires wandb to be installed. Run `pip install wandb`.",
            "wandb",
        ),
    ],
)
def test_fix_adds_a_package_that_is_missing(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC)
    (found,) = told("-", "--spec", "mine.yaml", cwd=tmp_path, text=text)
    assert any(remark.endswith("--fix adds it") for remark in found["remarks"])
    assert (tmp_path / "mine.yaml").read_text() == SPEC

    done = run("why", "-", "--spec", "mine.yaml", "--fix", cwd=tmp_path, text=text)

    assert done.returncode == 0, done.stderr
    assert f'"transformers>=5.13", {line}]' in (tmp_path / "mine.yaml").read_text().replace(
        f'"{line}"', line
    )
    assert "--fix adds it" not in done.stdout
    again = run("why", "-", "--spec", "mine.yaml", "--fix", cwd=tmp_path, text=text)
    assert again.stderr.startswith("nothing was changed")


@pytest.mark.parametrize(
    "module",
    [
        *("my_own_module", "tranformers", "torch", "../x", "a" * 90),
        *("google", "google.colab", "google.colab.drive", "google.cloud", "google.nothing_known"),
        *(
            "torch._six",
            "numpy._core",
            "triton.ops",
            "transformers.generation_utils",
            "sklearn.nothing",
            "google_colab",
        ),
        *("dataset", "utils", "src", "src.models", "distutils", "imp", "pkg_resources"),
    ],
)
def test_fix_adds_no_name_that_is_not_known_or_is_listed(tmp_path: Path, module: str) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC)

    run(
        "why",
        "-",
        "--spec",
        "mine.yaml",
        "--fix",
        cwd=tmp_path,
        text=f"ModuleNotFoundError: No module named '{module}'",
    )

    assert (tmp_path / "mine.yaml").read_text() == SPEC


def test_the_pins_of_the_demo_are_known_by_their_error(tmp_path: Path) -> None:
    """What importing datasets ends in with those pins, and the rule that lint finds it by."""
    demo = Path(__file__).parents[2] / "examples" / "demo" / "four-pins.yaml"
    (tmp_path / "four-pins.yaml").write_text(demo.read_text())

    (found,) = told(
        "-",
        "--spec",
        "four-pins.yaml",
        cwd=tmp_path,
        text="AttributeError: module 'pyarrow' has no attribute 'PyExtensionType'\n",
    )

    assert found["id"] == "pyarrow-extension-type"
    assert found["fits"]
    assert "PKG010" in {finding["id"] for finding in found["findings"]}


def test_a_notebook_is_read_by_what_its_cells_printed(tmp_path: Path) -> None:
    error = {
        "output_type": "error",
        "ename": "ImportError",
        "evalue": "",
        "traceback": ["\x1b[0;31mRuntimeError\x1b[0m: No CUDA GPUs are available"],
    }
    cells = [{"cell_type": "code", "source": "CUDA out of memory", "outputs": [error]}]
    (tmp_path / "work.ipynb").write_text(json.dumps({"cells": cells}))

    assert [one["id"] for one in told("work.ipynb", cwd=tmp_path)] == ["no-cuda-gpus"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.txt", None, "cannot read none.txt"),
        ("empty.txt", b" \n", "empty.txt is empty"),
        ("bare.ipynb", b'{"cells": []}', "bare.ipynb has no saved output"),
        ("odd.ipynb", b"[1", "odd.ipynb is not a valid notebook"),
        ("deep.ipynb", b"[" * 100_000, "deep.ipynb is not a valid notebook"),
        ("model.bin", b"PK\x03\x04\0\0" * 1000, "model.bin is not a text file"),
    ],
)
def test_bad_input(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)

    done = run("why", name, cwd=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


CUDA = "RuntimeError: No CUDA GPUs are available"


@pytest.mark.parametrize(
    "content",
    [
        CUDA.replace(":", ":\x1b[0m").encode(),
        f"Traceback\r\n{CUDA}\r\n".encode(),
        f"step 1\rstep 2\r{CUDA}\r\n".encode(),
        f"\ufeff{CUDA}".encode(),
        f"{CUDA}\r\n".encode("utf-16"),
        f"\x1b]8;;file:///a\x1b\\\x1b[31m{CUDA[:20]}\x1b[0m{CUDA[20:]}\x1b]8;;\x07".encode(),
        b"\xff\xfe\xfd bytes that are no text " + CUDA.encode("utf-16-le"),
        b"\xe9\xe8 " + CUDA.encode(),
    ],
    ids=[
        "colour",
        "windows",
        "progress",
        "mark",
        "powershell",
        "link",
        "damaged utf-16",
        "latin-1",
    ],
)
def test_texts_as_programs_write_them(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_bytes(content)
    if content.startswith(b"\xff\xfe\xfd"):
        assert (
            run("why", "trace.txt", cwd=tmp_path).returncode == 1
        )  # odd bytes before it: it cannot be told, and nothing breaks
        return

    assert [one["id"] for one in told("trace.txt", cwd=tmp_path)] == ["no-cuda-gpus"]


def test_a_huge_log_is_answered_by_its_ends(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("w") as file:
        file.write("RuntimeError: Too many open files\n")
        file.writelines("loss 0.5\n" * 1000 for _ in range(5600))
        file.write(f"{CUDA}\n{'x' * 3_000_000}")

    before = time.monotonic()
    done = run("why", "huge.txt", "--output-format", "json", cwd=tmp_path)

    assert (tmp_path / "huge.txt").stat().st_size > 50_000_000
    assert [one["id"] for one in json.loads(done.stdout)["explanations"]] == [
        "no-cuda-gpus",
        "worker-files",
    ]
    assert "characters in the middle were not searched" in done.stderr
    assert time.monotonic() - before < 120  # a hang, not a matter of speed


def test_one_line_without_end_is_looked_through_at_its_ends(tmp_path: Path) -> None:
    (tmp_path / "line.txt").write_text("a" * 20_000_000 + " " + CUDA)

    (found,) = told("line.txt", cwd=tmp_path)

    assert (found["id"], len(found["line"]) <= 500) == ("no-cuda-gpus", True)


def test_a_notebook_with_many_outputs(tmp_path: Path) -> None:
    stream = {"output_type": "stream", "text": ["loss 0.5\n"] * 50}
    plot = {"output_type": "display_data", "data": {"image/png": "A" * 100_000}}
    cells = [
        {"cell_type": "code", "outputs": [stream, plot, None, {"text": None}, {"text": 7}]}
        for _ in range(200)
    ]
    cells.append(
        {
            "cell_type": "code",
            "outputs": [
                {
                    "output_type": "error",
                    "ename": "RuntimeError",
                    "evalue": "No CUDA GPUs are available",
                    "traceback": [],
                }
            ],
        }
    )
    (tmp_path / "many.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (tmp_path / "without-suffix").write_text(json.dumps({"cells": cells, "nbformat": 4}))

    assert [one["id"] for one in told("many.ipynb", cwd=tmp_path)] == ["no-cuda-gpus"]
    assert [one["id"] for one in told("without-suffix", cwd=tmp_path)] == ["no-cuda-gpus"]


def test_versions_of_the_lock_and_the_report_are_told(tmp_path: Path) -> None:
    text = "ImportError: Using the `Trainer` with `PyTorch` requires `accelerate>=1.1.0`"
    done = run(
        "why", "-", "--report", str(RECORDED / "accelerate-too-old.json"), cwd=tmp_path, text=text
    )

    assert "details   accelerate>=1.1.0 is required, and the report has 0.26.1" in done.stdout


def test_foreign_text_does_not_reach_the_terminal_as_it_is(tmp_path: Path) -> None:
    done = run(
        "why",
        "-",
        cwd=tmp_path,
        text="\x1b]0;owned\x07 RuntimeError: No CUDA GPUs are available \x9b2J\n",
    )

    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\x9b" not in done.stdout


def test_the_data_has_the_keys_that_are_documented(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SPEC)
    report = str(RECORDED / "quickstart.json")
    done = run(
        "why",
        "-",
        "--spec",
        "mine.yaml",
        "--report",
        report,
        "--output-format",
        "json",
        cwd=tmp_path,
        text="Your setup doesn't support bf16/gpu",
    )

    found = json.loads(done.stdout)
    assert list(found) == ["version", "unknown", "explanations", "changed"]
    (one,) = found["explanations"]
    assert set(one) == {
        "id",
        "line",
        "said",
        "remarks",
        "confirmations",
        "means",
        "helps",
        "fits",
        "findings",
        "checks",
        "source",
        "as_of",
        "confidence",
    }
    (finding,) = one["findings"]
    assert finding["fix"] == {"title": "set `precision: fp16`", "applicability": "unsafe"}
    page = (Path(__file__).parents[2] / "docs/how-to/explain-errors.md").read_text(encoding="utf-8")
    assert [key for key in (*found, *one, *finding) if f"`{key}`" not in page] == []
    assert f"{len(load_symptoms())} errors" in page


def test_what_stands_beside_an_unknown_error_is_not_taken_for_it(tmp_path: Path) -> None:
    note = (
        "huggingface/tokenizers: The current process just got forked, after parallelism has "
        "already been used.\n"
    )
    raised = (
        'Traceback (most recent call last):\n  File "/home/me/train.py", line 2, in '
        "<module>\nKeyError: 'labels'\n"
    )

    done = run("why", "-", cwd=tmp_path, text=note + raised)
    assert done.returncode == 1  # the error itself is not known
    assert done.stdout.startswith(
        "unknown error: KeyError: 'labels'\nThis error ended the program."
    )

    earlier = run("why", "-", "--output-format", "json", cwd=tmp_path, text=f"{CUDA}\n{raised}")
    assert earlier.returncode == 0
    assert json.loads(earlier.stdout)["unknown"] == "KeyError: 'labels'"
    assert run("why", "-", cwd=tmp_path, text=note).returncode == 0


def test_fix_without_a_spec_is_a_mistake(tmp_path: Path) -> None:
    done = run("why", "-", "--fix", cwd=tmp_path, text="x")

    assert done.returncode == 2
    assert "--spec" in done.stderr
