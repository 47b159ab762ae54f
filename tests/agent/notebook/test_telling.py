"""What a person reads: short lines without secrets, passwords and control characters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.agent.core.files import write_json_object
from provision.agent.notebook.loaded_modules import KernelProcess
from provision.agent.notebook.output import Printer
from provision.agent.notebook.session import RunState, read_run_state


def test_lines_are_short_and_hold_no_control_characters() -> None:
    said: list[str] = []
    teller = Printer(said.append)
    teller.print_stage_line("check", "one\ntwo\x1b[31m\u202e")
    teller.print_stage_line("", "x" * 1000)
    assert said[0] == "check       one two [31m "
    assert len(said[1]) == 400


def test_secrets_and_passwords_of_addresses_are_not_said() -> None:
    teller = Printer()
    teller.add_secrets(["token-value", "ab", ""])
    assert (
        teller.clean("token-value ab https://me:pass@index.example.com/simple")
        == "<redacted> ab https://<redacted>@index.example.com/simple"
    )


def test_another_kernel_has_loaded_nothing_of_what_was_changed(tmp_path: Path) -> None:
    here = KernelProcess(7, 11)
    ledger = RunState(here, ["numpy"], alive="a", proven="p", verdict="verified", report_sha256="r")
    ledger.save(tmp_path)
    assert read_run_state(tmp_path, here) == ledger
    for other in (KernelProcess(7, 12), KernelProcess(8, 11)):
        found = read_run_state(tmp_path, other)
        assert (found.in_use, found.kernel, found.proven) == ([], other, "p")


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", json.dumps({"schema": "other", "in_use": ["x"]})]
)
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.json").write_text(content)
    assert read_run_state(tmp_path, KernelProcess(1, 1)) == RunState(KernelProcess(1, 1))


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_json_object(tmp_path / "a.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json_object(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
