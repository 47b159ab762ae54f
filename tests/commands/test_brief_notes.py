"""Commands that lock show a note in one line, before their result."""

from __future__ import annotations

from pathlib import Path

from tests.rig import Bench, make_index, make_wheel


def test_a_note_has_one_line(bench: Bench, tmp_path: Path) -> None:
    make_index(tmp_path / "index", (make_wheel(tmp_path / "wheels", "lead", "1.0.0"),))
    target = "targets: {c: {kind: colab, isolation: venv}}\n"
    head = 'gpu: none\npython: "3.12"\npackages: [lead]\ntraining: {framework: none}\n'
    bench.spec(f"{head}{target}")
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stderr
    (note,) = [line for line in done.stderr.splitlines() if "IMG022" in line]
    assert note.startswith("note[IMG022] target `c` uses the latest runtime")
    assert note.endswith("see `provision explain IMG022`")
    assert "Found 1" not in done.stderr
