"""Each zipapp holds the modules of the core that its program imports, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import provision
from provision.agent.core.files import digest_of_sources
from provision.verification.device_files import (
    CORE_OF_PROGRAM,
    PARTS_OF_PROGRAM,
    agent_files,
    probe_digest,
)
from tests.agent.test_imports import imported_modules

AGENT = Path(provision.__file__).parent / "agent"
CORE = "provision.agent.core."


def core_imports(path: Path) -> set[str]:
    """The modules of the core that a file imports."""
    package = ".".join(("provision", *path.relative_to(AGENT.parent).parent.parts))
    names = imported_modules(path.read_text(encoding="utf-8"), package)
    return {name.removeprefix(CORE).split(".")[0] for name in names if name.startswith(CORE)}


def needed_core(program: str) -> set[str]:
    """The modules of the core that a program imports, directly or through others."""
    needed: set[str] = set()
    folders = (program, *PARTS_OF_PROGRAM.get(program, ()))
    paths = [path for folder in folders for path in (AGENT / folder).rglob("*.py")]
    new = {name for path in paths for name in core_imports(path)}
    while new:
        needed |= new
        new = {name for module in new for name in core_imports(AGENT / f"core/{module}.py")}
        new -= needed
    return needed


@pytest.mark.parametrize("program", sorted(CORE_OF_PROGRAM))
def test_the_manifest_is_what_the_program_imports(program: str) -> None:
    listed = CORE_OF_PROGRAM[program]
    assert list(listed) == sorted(needed_core(program))


@pytest.mark.parametrize("program", sorted(CORE_OF_PROGRAM))
def test_a_zipapp_holds_its_program_and_its_core_only(program: str) -> None:
    inner = {tuple(name.split("/")[1:]) for name in agent_files(program) if "/" in name}
    assert {parts[0] for parts in inner if len(parts) > 1} == {
        "core",
        program,
        *PARTS_OF_PROGRAM.get(program, ()),
    }
    modules = {parts[1].removesuffix(".py") for parts in inner if parts[0] == "core"}
    assert modules == {"__init__", *CORE_OF_PROGRAM[program]}


def test_what_the_probe_does_not_hold_cannot_change_its_digest() -> None:
    files = agent_files("probe")
    assert probe_digest() == digest_of_sources(files)
    assert not {"process", "agent_config"} & {Path(name).stem for name in files} - set(
        CORE_OF_PROGRAM["probe"]
    )
