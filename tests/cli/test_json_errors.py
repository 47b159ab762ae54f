"""Every command with JSON output reports a failure in one form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import click
import pytest

from provision.cli.app import app
from tests import fork_server
from tests.commands.test_several_targets import NO_BUCKET, WORKBENCH
from tests.rig import Bench, small_spec

FAILING_ARGUMENTS = {
    "explain": ["no-such-rule"],
    "why": ["missing.txt"],
    "facts list": ["no-such-table"],
    "facts show": ["no-such-table", "key"],
    "facts why": ["no-such-fact"],
    "init": ["not-a-spec.txt"],
    "diff": ["missing.json", "missing.json"],
    "env": ["--python", "missing"],
    "export": ["missing.yaml", "--format", "pylock"],
    "probe export": ["folder", "--spec", "missing.yaml"],
    "report add": ["missing.json"],
    "report repro": ["missing.json", "P02"],
    "sandbox up": ["--fault", "no-such-fault"],
    "sandbox faults": ["--no-such-option"],
}
"""Arguments with which a command fails; those of the others are a spec that does not exist."""


def json_commands(group: click.Group = app, prefix: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from json_commands(command, f"{name} ")
        elif any(parameter.name == "output_format" for parameter in command.params):
            yield prefix + name


def run(folder: Path, *arguments: str) -> tuple[int, dict, str]:
    """Return the exit code, the document and the text for people of a command."""
    with chdir(folder):
        done = fork_server.run(
            [*fork_server.ARGV, *arguments, "--output-format", "json"],
            capture_output=True,
            text=True,
            timeout=600,
        )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("command", sorted(json_commands()))
def test_a_failure_is_a_list_of_errors(command: str, tmp_path: Path) -> None:
    words = [*command.split(), *FAILING_ARGUMENTS.get(command, ["missing.yaml"])]
    code, document, text = run(tmp_path, *words)
    assert code in (1, 2), text
    assert document["version"] == 1
    (error,) = document["errors"]
    assert {"what", "why", "help"} <= set(error)
    assert error["what"] in " ".join(text.split())


@pytest.mark.parametrize("command", sorted(json_commands()))
def test_arguments_that_are_not_understood_are_errors_too(command: str, tmp_path: Path) -> None:
    code, document, text = run(tmp_path, *command.split(), "--no-such-option")
    assert code == 2
    (error,) = document["errors"]
    assert error["what"].startswith("No such option '--no-such-option'."), text
    assert error["help"] == f"see `provision {command} --help`"
    assert document["error"] == {**error, "exit_code": 2}


def test_findings_that_stop_a_command_are_errors_with_positions(bench: Bench) -> None:
    bench.spec("gpu: none\npython: 3.10\npackages: [alpha, 7]\n")
    done = bench.run("plan", "spec.yaml", "--output-format", "json")
    document = json.loads(done.stdout)
    positions = [(error["id"], error["file"], error["line"]) for error in document["errors"]]
    assert positions == [
        (finding["id"], "spec.yaml", finding["range"]["start"]["line"])
        for finding in document["diagnostics"]
        if finding["severity"] == "error"
    ]
    assert [line for _, _, line in positions] == [2, 3]
    assert document["error"]["what"] == "the spec has errors"


def test_an_error_at_a_position_has_it_as_data(bench: Bench) -> None:
    bench.spec(small_spec("alpha", extra="targets: {x: {kind: local, manager: uv}}\n"))
    (bench.folder / "spec.lock").write_text("<<<<<<< HEAD\n")
    done = bench.run("lock", "spec.yaml", "--check", "--output-format", "json")
    (error,) = json.loads(done.stdout)["errors"]
    assert error["what"] in done.stderr


@pytest.mark.parametrize("target", [WORKBENCH, NO_BUCKET])
def test_the_errors_of_one_target_among_several_are_listed(bench: Bench, target: str) -> None:
    bench.spec(
        small_spec("alpha", extra=f"targets:\n  one: {{kind: local}}\n  two: {{{target}}}\n")
    )
    variables = {"GOOGLE_APPLICATION_CREDENTIALS": str(bench.folder / "nobody.json")}
    done = bench.run("plan", "spec.yaml", "--output-format", "json", **variables)
    document = json.loads(done.stdout)
    assert list(document["verification"]) == ["one"]
    assert document["errors"]
    assert {error["target"] for error in document["errors"]} == {"two"}
    assert all("id" in error for error in document["errors"]) is (target == NO_BUCKET)
