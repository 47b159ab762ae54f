"""Completion scripts are complete, and complete a word in a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from provision.cli.app import app

SHELLS = ("bash", "zsh", "fish")
TWO_TARGETS = "gpu: none\ntargets: {laptop: {kind: local}, far-away: {kind: workbench}}\n"


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
            [
                *("text", "concise", "json", "sarif", "github"),
                *("gitlab", "junit", "markdown", "rdjson"),
            ],
        ),
        (["provision", "completion", "f"], ["fish"]),
        (["provision", "apply", "spec.yaml", "--target", ""], ["laptop", "far-away"]),
    ],
)
def test_bash_completes_a_word(
    on_path: dict[str, str], tmp_path: Path, line: list[str], arguments: list[str]
) -> None:
    (tmp_path / "script").write_text(script("bash"))
    (tmp_path / "spec.yaml").write_text(TWO_TARGETS)
    ask = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        complete=$(complete -p provision | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        $complete provision "${COMP_WORDS[COMP_CWORD]}" ""
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", ask, "bash", str(tmp_path / "script"), *line],
        cwd=tmp_path,
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
    assert "Show what exists" in done.stdout


def complete(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """Return the words for the last word of a line, as the script of bash requests them."""
    words = line.split(" ")
    monkeypatch.setenv("_PROVISION_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    with chdir(folder), pytest.raises(SystemExit) as ended:
        app.main([], prog_name="provision")
    output = capsys.readouterr()
    assert (ended.value.code, output.err) == (0, "")
    return [word.removeprefix("plain,") for word in output.out.split()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("provision apply --target ", ["laptop", "far-away"]),
        ("provision apply -t F", ["far-away"]),
        ("provision apply --yes other.yml --target=", ["one", "two"]),
        ("provision run other.yml -t ", ["one", "two"]),
        ("provision report other.yml -t t", ["two"]),
        ("provision report repro other.yml D01 -t ", ["one", "two"]),
        ("provision probe export folder --spec other.yml -t t", ["two"]),
        ("provision run plain.yaml -t ", ["local"]),
        ("provision run extending.yaml -t ", ["one", "two", "three"]),
        ("provision run profile.yaml -t ", ["local"]),
        ("provision explain trainer-needs-", ["trainer-needs-accelerate"]),
        ("provision explain pkg001", ["PKG001"]),
        ("provision explain YML001", ["YML001"]),
        ("provision verify --only p02", ["P02"]),
        ("provision report repro report.json P02", ["P02"]),
        ("provision suggest --gpu v100-", ["V100-32GB"]),
        ("provision init --gpu v100-", ["V100-32GB"]),
        ("provision init --target co", ["colab", "colab-enterprise"]),
        ("provision facts list gp", ["gpus", "gpus.unsupported"]),
        ("provision facts list pl", ["places"]),
        ("provision check requirements.txt --on COLAB-T", ["colab-t4"]),
        ("provision check --on th", ["this"]),
        ("provision facts show gpus l40s", ["L40S"]),
        ("provision facts why TOKENIZERS_P", ["TOKENIZERS_PARALLELISM"]),
    ],
)
def test_words_of_the_domain_are_completed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
    words: list[str],
) -> None:
    (tmp_path / "provision.yaml").write_text(TWO_TARGETS)
    (tmp_path / "other.yml").write_text(
        "all: &all {one: {kind: local}, two: {kind: local}}\ntargets: *all\n"
    )
    (tmp_path / "plain.yaml").write_text("gpu: none\npackages: [numpy]\n")
    (tmp_path / "extending.yaml").write_text(
        "extends: other.yml\ntargets: {three: {kind: local}}\n"
    )
    (tmp_path / "profile.yaml").write_text("extends: builtin:huggingface-trainer\n")
    assert complete(line, tmp_path, monkeypatch, capsys) == words


@pytest.mark.parametrize(
    "content",
    [
        b"targets: [\n",
        b"targets: 5\n",
        b"targets: {? [a, b] : c, 7: {kind: local}\n",
        b"\xff\xfe\x00",
        b"targets: " + b"[" * 3000,
        b"#" * 300_000 + b"\ntargets: {a: {kind: local}}\n",
        None,
    ],
    ids=["unclosed", "number", "keys", "bytes", "deep", "long", "missing"],
)
def test_a_broken_spec_completes_nothing_and_writes_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
) -> None:
    if content is not None:
        (tmp_path / "provision.yaml").write_bytes(content)
    assert complete("provision apply --target ", tmp_path, monkeypatch, capsys) == []


def test_a_fifo_as_spec_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "provision.yaml")
    assert complete("provision apply --target ", tmp_path, monkeypatch, capsys) == []


def test_targets_are_completed_without_the_drivers(on_path: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "provision.yaml").write_text(TWO_TARGETS)
    program = (
        "import sys\nfrom provision.cli.main import main\ntry:\n    main([])\nfinally:\n"
        "    print([name for name in ('pydantic', 'provision.targets', 'provision.commands') "
        "if name in sys.modules], file=sys.stderr)\n"
    )
    variables = {
        "_PROVISION_COMPLETE": "bash_complete",
        "COMP_WORDS": "provision apply -t ",
        "COMP_CWORD": "3",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**on_path, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.stdout, done.stderr) == ("plain,laptop\nplain,far-away\n", "[]\n")
