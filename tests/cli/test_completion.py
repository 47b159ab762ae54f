"""Completion scripts are complete, and complete a word in a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHELLS = ("bash", "zsh", "fish")


def script(shell: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "provision", "completion", shell],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_the_shell_reads(shell: str, tmp_path: Path) -> None:
    text = script(shell)
    assert f"_PROVISION_COMPLETE={shell}_complete" in text
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here to read its script")
    path = tmp_path / "script"
    path.write_text(text)
    done = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def on_path(tmp_path: Path) -> dict[str, str]:
    """Variables under which `provision` is a program on the PATH."""
    program = tmp_path / "bin/provision"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m provision "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        (["provision", "st"], ["status"]),
        (["provision", "l"], ["lint", "lock"]),
        (["provision", "apply", "--ver"], ["--verify", "--verbose"]),
        (
            ["provision", "lint", "--output-format", ""],
            ["text", "concise", "json", "sarif", "github"],
        ),
        (["provision", "completion", "f"], ["fish"]),
    ],
)
def test_bash_completes_a_word(
    on_path: dict[str, str], tmp_path: Path, line: list[str], arguments: list[str]
) -> None:
    (tmp_path / "script").write_text(script("bash"))
    ask = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        complete=$(complete -p provision | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        $complete provision "${COMP_WORDS[COMP_CWORD]}" ""
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", ask, "bash", str(tmp_path / "script"), *line],
        env=on_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(arguments)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_answered_with_words_and_help(
    on_path: dict[str, str], shell: str
) -> None:
    variables = {
        "_PROVISION_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "provision st",
        "COMP_CWORD": "1" if shell == "zsh" else "st",
    }
    done = subprocess.run(
        ["provision"], env={**on_path, **variables}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "status" in done.stdout
    assert "destroy" not in done.stdout
    assert "Say what exists" in done.stdout
