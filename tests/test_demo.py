"""The demo: what `make demo` prints is true, offline and quick, and shown in the README."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.verification import read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.summary import summarize_comparison
from tests.agent.probe.bench import Environment
from tests.agent.probe.conftest import build_probe, document
from tests.support import require

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "demo"
PROVISION = str(Path(sys.executable).parent / "provision")
PACKAGES = {
    "torch": "2.11.0+cu130",
    "transformers": "5.13.0",
    "accelerate": "1.15.0",
    "datasets": "5.2.0",
}
DRIVERS = {"colab": ("580.82.07", 13000), "workbench": ("535.261.03", 12020)}
SENTENCE = (
    "works on colab, fails on workbench: D02 driver version; the decisive difference: "
    "driver.version 580.82.07 -> 535.261.03"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pair of reports by the probe as it is: one environment, a T4 of a library that answers as
    NVML does, two drivers.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")
    folder = tmp_path_factory.mktemp("demo")
    library = [
        str(compiler),
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(folder / "libnvidia-ml.so.1"),
    ]
    subprocess.run(
        [*library, str(ROOT / "tests/agent/probe/fake_nvml.c")], check=True, capture_output=True
    )
    root = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    environment = Environment(root, build_probe(folder / "probe.pyz"), document, {})
    for name, version in PACKAGES.items():
        environment.add(name, version=version)
    return {name: _report(name, environment, folder) for name in DRIVERS}


def _report(name: str, environment: Environment, folder: Path) -> Path:
    driver, cuda = DRIVERS[name]
    t4 = "total_mib=15360;power_limit_mw=70000;power_default_mw=70000;capability=75;pci=515379422"
    told = f"cuda={cuda};{t4}"
    variables = {
        "HOME": str(folder),
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_NVML": told,
        "FAKE_NVML_DRIVER": driver,
        "FAKE_NVML_NAME": "Tesla T4",
    }
    _, report, said = environment.verify(
        environ=variables,
        tier="inventory",
        gpu={"type": "T4", "count": 1},
        flavour="cu130",
        requires__driver=">=580",
        spec={"name": "hf-trainer", "digest": "sha256:made-up"},
        target={"name": name, "kind": name, "manager": "uv"},
        simulated=["the card and its driver", "the packages"],
    )
    assert report, said
    path = folder / f"{name}.json"
    shutil.copy(environment.root / "report.json", path)
    return path


def test_the_reports_are_those_that_the_probe_makes(made: dict[str, Path]) -> None:
    for name, path in made.items():
        if os.environ.get("UPDATE_GOLDEN") == "1":
            shutil.copy(path, DEMO / f"{name}.json")
    kept = {name: read_report((DEMO / f"{name}.json").read_bytes(), name) for name in DRIVERS}
    new = {name: read_report(path.read_bytes(), name) for name, path in made.items()}

    for reports in (kept, new):
        assert [one.verdict for one in reports.values()] == ["simulated", "failed"]
        assert all(
            one.document["subject"]["simulated"] == ["the card and its driver", "the packages"]
            for one in reports.values()
        )
        found = compare_reports(reports["colab"], reports["workbench"], ("colab", "workbench"))
        assert summarize_comparison(found).startswith(SENTENCE)
        assert [turn.id for turn in found.check_changes] == ["D02"]


def test_the_reports_hold_nothing_of_the_machine_that_made_them() -> None:
    for name in DRIVERS:
        text = (DEMO / f"{name}.json").read_text()
        assert len(text) < 20_000
        assert not re.search(r"/(?:root|home|tmp|srv)/", text), name


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


def _environ() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
        "COLUMNS": "100"
    }


def test_the_story_is_told_in_a_minute_without_a_network(shown: tuple[str, float]) -> None:
    text, seconds = shown

    assert seconds < 60
    steps = dict(_steps(text))
    assert list(steps) == ["lint", "suggest", "why", "diff"]
    assert {name: len(lines) for name, lines in steps.items() if len(lines) > 13} == {}
    assert {
        word
        for word in ("PYT001", "PKG013", "CUD001")
        if not any(f"error {word}" in line for line in steps["lint"])
    } == set()
    assert any(
        line.startswith("1  Python 3.11, torch 2.0.1, transformers 4.29.2, CUDA 11.8")
        for line in steps["suggest"]
    )
    assert "D02 driver version: driver 535.261.03 does not satisfy >=580" in " ".join(
        " ".join(steps["why"]).split()
    )
    assert SENTENCE in " ".join(" ".join(steps["diff"]).split())
    assert "provision apply specs/workbench-l4.yaml --sandbox" in text
    assert "simulated" in text


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


def test_the_readme_of_the_reports_says_what_is_not_real() -> None:
    text = (DEMO / "README.md").read_text()

    assert "simulated" in text
    assert all(
        json.loads((DEMO / f"{name}.json").read_bytes())["subject"]["simulated"] for name in DRIVERS
    )
    assert all(driver in text for driver, _ in DRIVERS.values())
