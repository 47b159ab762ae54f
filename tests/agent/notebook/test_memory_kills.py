"""A kernel that was killed because memory ran out is named by the next run of the cell."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision.agent.notebook.loaded_modules import KernelProcess
from provision.agent.notebook.memory_kills import (
    ADVICE,
    count_memory_kills,
    describe_program_kills,
    note_memory_kills,
)

FIRST, SECOND = KernelProcess(7, 11), KernelProcess(8, 900)


def system(
    folder: Path, *, of_container: int | None = None, of_system: int | None = None, boot: str = "b"
) -> Path:
    """Write the files that count the kills."""
    for name, number in (
        ("sys/fs/cgroup/memory.events", of_container),
        ("proc/vmstat", of_system),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if number is not None:
            (folder / name).write_text(f"oom 9\noom_kill {number}\noom_group_kill 0\n")
    boot_file = folder / "proc/sys/kernel/random/boot_id"
    boot_file.parent.mkdir(parents=True, exist_ok=True)
    boot_file.write_text(f"{boot}\n")
    return folder


@pytest.mark.parametrize(
    ("of_container", "of_system", "counted"),
    [(2, 5, 2), (None, 5, 5), (0, 5, 0), (None, None, None)],
)
def test_the_container_counts_before_the_system(
    tmp_path: Path, of_container: int | None, of_system: int | None, counted: int | None
) -> None:
    root = system(tmp_path, of_container=of_container, of_system=of_system)
    assert count_memory_kills(root) == counted


def test_a_killed_kernel_is_named_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert note_memory_kills(tmp_path, FIRST, system(root, of_system=3)) == []
    what, advice = note_memory_kills(tmp_path, SECOND, system(root, of_system=4))
    assert what.startswith("the kernel of the last run has ended")
    assert "killed a process because memory ran out" in what
    assert advice == ADVICE
    assert note_memory_kills(tmp_path, SECOND, root) == []


def test_a_killed_program_of_the_same_kernel_is_named(tmp_path: Path) -> None:
    root = tmp_path / "root"
    note_memory_kills(tmp_path, FIRST, system(root, of_container=0))
    what, _ = note_memory_kills(tmp_path, FIRST, system(root, of_container=2))
    assert what == "since the last run the system killed 2 processes because memory ran out"


def test_a_restarted_kernel_without_a_kill_gives_nothing(tmp_path: Path) -> None:
    root = system(tmp_path / "root", of_system=3)
    note_memory_kills(tmp_path, FIRST, root)
    assert note_memory_kills(tmp_path, SECOND, root) == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kills": "3"}'])
def test_another_boot_and_a_damaged_file_give_nothing(tmp_path: Path, content: str) -> None:
    root = tmp_path / "root"
    note_memory_kills(tmp_path, FIRST, system(root, of_system=3, boot="one"))
    assert note_memory_kills(tmp_path, SECOND, system(root, of_system=9, boot="two")) == []
    (tmp_path / "kernel.json").write_text(content)
    assert note_memory_kills(tmp_path, FIRST, system(root, of_system=12, boot="two")) == []


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (3, 4, "the system killed a process of it because memory ran out"),
        (0, 2, "the system killed 2 processes of it because memory ran out"),
        (3, 3, None),
        (None, 4, None),
        (3, None, None),
    ],
)
def test_kills_while_a_program_ran(before: int | None, after: int | None, what: str | None) -> None:
    assert describe_program_kills(before, after) == ([what, ADVICE] if what else [])
