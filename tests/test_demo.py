"""The demo: what `make demo` prints is true, offline and quick, and shown in the README."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.captures.pairs import make_capture
from tests.support import require

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "demo"
PROVISION = str(Path(sys.executable).parent / "provision")
NOT_INSTALLED = ("torchvision", "triton", "bitsandbytes", "nvidia-cudnn-cu12", "nvidia-nccl-cu12")
PACKAGES = {"torch": "2.11.0+cu130", **dict.fromkeys(NOT_INSTALLED)}
CAPTURES = {
    "colab": (
        "colab",
        {"driver.version": "580.82.07", "driver.major": "580", "driver.cuda": "13.0"},
        "3.12.11",
    ),
    "workbench": (
        "l4",
        {
            "driver.version": "535.261.03",
            "driver.major": "535",
            "driver.cuda": "12.2",
            "gpu.name": "Tesla T4",
            "gpu.compute_capability": "7.5",
            "gpu.vram_bytes": 16106127360,
            "host.cpu_affinity": 4,
            "host.ram_bytes": 15753637888,
            "host.shm_bytes": 7876816896,
        },
        "3.12.7",
    ),
}
"""The machine of tests/captures, the readings that differ from it, and the Python."""
SENTENCE = (
    "the likeliest cause of the error: on workbench, driver 535.261.03 is too old for torch "
    "2.11.0+cu130 (CUDA 13.0): it needs 580.65.06 or newer"
)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_captures_are_those_of_the_test_machines(name: str) -> None:
    machine, readings, python = CAPTURES[name]
    change = {"readings": readings, "packages": PACKAGES, "python": python}
    made = json.dumps(json.loads(make_capture(machine, change)), indent=1) + "\n"
    path = DEMO / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(made, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == made


def test_only_the_driver_is_a_cause() -> None:
    """Every other difference is harmless, and the error is not needed to find the driver."""
    captures = [f"{name}.json" for name in CAPTURES]
    done = _provision("diff", *captures, "--output-format", "json")

    assert done.returncode == 1
    (cause,) = json.loads(done.stdout)["causes"]
    assert cause["side"] == "b"


@pytest.fixture(scope="module")
def shown() -> tuple[str, float]:
    """What `make demo` prints, where nothing can be reached, and the seconds that it took."""
    unshare = (
        ["unshare", "--net", "--"]
        if os.geteuid() == 0
        else ["unshare", "--user", "--map-root-user", "--net", "--"]
    )
    able = (
        shutil.which("unshare") is not None
        and subprocess.run([*unshare, "true"], capture_output=True).returncode == 0
    )
    require(
        "root",
        able,
        "the network is taken away in a namespace, which needs unshare and root or user namespaces",
    )
    before = time.monotonic()
    done = subprocess.run(
        [*unshare, str(DEMO / "demo.sh")],
        capture_output=True,
        text=True,
        timeout=600,
        env={**_environ(), "PROVISION": PROVISION},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, time.monotonic() - before


def _provision(*words: str, cwd: Path = DEMO) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROVISION, *words], cwd=cwd, capture_output=True, text=True, env=_environ(), check=False
    )


def _environ() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
        "COLUMNS": "100"
    }


def test_the_story_is_told_in_a_minute_without_a_network(shown: tuple[str, float]) -> None:
    text, seconds = shown

    assert seconds < 60
    steps = dict(_steps(text))
    assert list(steps) == ["check", "diff", "init", "lint", "suggest"]
    assert {name: len(lines) for name, lines in steps.items() if len(lines) > 16} == {}
    assert {
        word
        for word in ("error PYT001", "error PKG013", "NTB002", "NTB004", "NTB006", "NTB007")
        if not any(word in line for line in steps["check"])
    } == set()
    assert SENTENCE in " ".join(" ".join(steps["diff"]).split())
    assert steps["init"][0] == "wrote provision.yaml"
    assert all(line.startswith("provision.yaml:") for line in steps["lint"])
    assert any(
        line.startswith("1  Python 3.11, torch 2.0.1, transformers 4.29.2, CUDA 11.8")
        for line in steps["suggest"]
    )
    assert "captures are examples" in text


def _steps(text: str) -> Iterator[tuple[str, list[str]]]:
    for part in text.split("\n$ provision ")[1:]:
        command, *lines = part.split("\n# ", maxsplit=1)[0].splitlines()
        yield command.split()[0], [line for line in lines if line]


def test_the_readme_shows_a_part_of_the_demo() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    script = (DEMO / "demo.sh").read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        assert f"docs/images/demo-{theme}.svg" in text
        picture = (ROOT / f"docs/images/demo-{theme}.svg").read_text(encoding="utf-8")
        words = html.unescape(re.sub(r"<[^>]+>", "", picture)).replace("\xa0", " ")
        commands = re.findall(r"\$ provision (.+)", words)
        assert len(commands) == 2
        assert all(command.strip() in script for command in commands)


def test_the_first_commands_of_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.split("## The first five minutes")[1].split("```")[1]
    lines = re.findall(r"^\$ provision (.+)$", block, re.MULTILINE)
    check, capture, diff = [shlex.split(line, comments=True) for line in lines]
    shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True)

    assert _provision(*check, cwd=tmp_path).returncode == 1
    captured = _provision(*capture, cwd=tmp_path)
    assert captured.returncode == 0, captured.stderr
    shutil.copy(DEMO / "colab.json", tmp_path / "works.json")
    shutil.copy(DEMO / "workbench.json", tmp_path / "fails.json")
    compared = _provision(*diff, cwd=tmp_path)
    assert compared.returncode == 1
    assert "the likeliest cause of the error: on fails, driver 535.261.03" in compared.stdout


def test_what_the_makefile_calls() -> None:
    done = subprocess.run(["make", "--dry-run", "demo"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "examples/demo/demo.sh" in done.stdout


def test_a_command_that_breaks_ends_the_story(tmp_path: Path) -> None:
    broken = tmp_path / "provision"
    broken.write_text("#!/bin/sh\nexit 70\n")
    broken.chmod(0o755)

    done = subprocess.run(
        [str(DEMO / "demo.sh")],
        capture_output=True,
        text=True,
        env={**_environ(), "PROVISION": str(broken)},
    )

    assert done.returncode == 70
    assert "suggest" not in done.stdout


def test_it_can_be_interrupted(tmp_path: Path) -> None:
    slow = tmp_path / "provision"
    slow.write_text("#!/bin/sh\necho at work\nexec sleep 30\n")
    slow.chmod(0o755)
    running = subprocess.Popen(
        [str(DEMO / "demo.sh")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**_environ(), "PROVISION": str(slow)},
    )
    assert running.stdout is not None
    while (line := running.stdout.readline()) != "at work\n":
        assert line
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=600)

    assert (running.returncode, said) == (130, "")


def test_the_script_is_clean() -> None:
    for words in (["shellcheck", str(DEMO / "demo.sh")], ["shfmt", "-d", str(DEMO / "demo.sh")]):
        done = subprocess.run(
            [Path(sys.executable).parent / words[0], *words[1:]], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_of_the_demo_says_what_is_not_real() -> None:
    text = (DEMO / "README.md").read_text(encoding="utf-8")

    assert "No machine wrote the two captures" in text
    assert all(readings["driver.version"] in text for _, readings, _ in CAPTURES.values())
