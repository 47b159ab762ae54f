"""The effects on this machine. Each names everything it needs; performing one twice is safe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.effects.conda import CreateCondaPrefix
from provision.effects.packages import Index, Pin


class InstallPython(NamedTuple):
    """Let uv fetch a managed CPython of this minor version."""

    minor: str


class CreateVenv(NamedTuple):
    """Make an empty virtual environment at `path` with an interpreter of this minor version, in
    place of anything there.
    """

    path: Path
    minor: str


class InstallPackages(NamedTuple):
    """Install exactly these pins, every file checked against its hash: wheels, then what is built
    from source with them.

    How each came there is kept in the environment's installed.json.
    """

    environment: Path
    minor: str
    pins: tuple[Pin, ...]
    indexes: tuple[Index, ...] = ()
    shared: bool = False
    """Whether another program put packages there too: those stay."""
    reinstall: tuple[str, ...] = ()
    """Names of pins to install anew although they are there in the wanted version."""


class Damage(NamedTuple):
    """How the files of an environment differ from what was installed.

    `packages` are those with such files, by name, and what is wrong with each file; `started`
    are files that no package lists and Python reads at each
    start. `by` says what was compared: "size" (nothing was noted when they were installed),
    "size and time of change", or "sha256".
    """

    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    startup_files: tuple[str, ...] = ()
    compared_by: str = "size"


class WriteFile(NamedTuple):
    """Write a file in one step (temporary file, fsync, rename)."""

    path: Path
    content: str | bytes
    mode: int | None = 0o644
    """None keeps the mode of the file that is there."""


class MakeFolder(NamedTuple):
    """Make a folder and its parents."""

    path: Path
    mode: int = 0o755


class RemoveTree(NamedTuple):
    """Remove a folder of ours and all it holds; nothing happens when it is gone already."""

    path: Path


class MoveFile(NamedTuple):
    """Give a file in a folder of ours another place on the same disk; nothing happens when it is
    gone already.
    """

    path: Path
    destination: Path


class RemoveFileIfUnmodified(NamedTuple):
    """Remove a file of ours outside our own folder, as long as its sha256 is the one that we wrote;
    what someone has changed stays, and that is told.
    """

    path: Path
    sha256: str


class ReplaceSymlink(NamedTuple):
    """Make the symbolic link `path` point at `target`, in place of an older link of ours."""

    path: Path
    target: str


class CreateSymlink(NamedTuple):
    """Make the symbolic link `path`, outside our own folder, point at `target`; what is there
    already stays, but for a link to `instead_of`.
    """

    path: Path
    target: str
    replaced_target: str = ""


class RemoveSymlink(NamedTuple):
    """Remove a link of ours outside our own folder, as long as it points at `target`, and with
    `dead` only where nothing is there any more.

    What stays is told.
    """

    path: Path
    target: str
    only_if_dangling: bool = False


class RunProbe(NamedTuple):
    """Run the probe in an environment; its report appears at `report`. `environment` is added to
    the caller's.
    """

    python: Path
    zipapp: Path
    expectations: Path
    report: Path
    timeout_s: int
    environment: tuple[tuple[str, str], ...] = ()
    selected_checks: tuple[str, ...] = ()


LocalEffect = (
    InstallPython
    | CreateVenv
    | CreateCondaPrefix
    | InstallPackages
    | WriteFile
    | MakeFolder
    | MoveFile
    | ReplaceSymlink
    | CreateSymlink
    | RemoveTree
    | RemoveFileIfUnmodified
    | RemoveSymlink
    | RunProbe
)


class MonitorRequest(NamedTuple):
    """Where the record of a run goes, and what it says of spec and program; values of the variables
    in `secrets` are kept out of it.
    """

    record: Path
    subject: Mapping[str, str]
    program: Mapping[str, str | int]
    secrets: tuple[str, ...]
