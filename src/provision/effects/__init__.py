"""All we ever ask of or do to the world: what a Reader can tell, and the closed set of effects a
World performs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from provision.effects.conda import (
    CondaChannel,
    CondaMatchSpec,
    CondaProgram,
    CondaRecord,
    CondaSolveRequest,
    CreateCondaPrefix,
)
from provision.effects.google import (
    AwaitReport,
    CloudReader,
    ColabEffect,
    CreateInstance,
    DeleteInstance,
    DeleteObjects,
    GoogleCloudEffect,
    InstanceEffect,
    ResizeDisk,
    RunOnColab,
    StartInstance,
    StopColabSession,
    StopInstance,
    UpdateInstance,
    UploadObjects,
)
from provision.effects.local import (
    CreateSymlink,
    CreateVenv,
    Damage,
    InstallPackages,
    InstallPython,
    LocalEffect,
    MakeFolder,
    MonitorRequest,
    MoveFile,
    RemoveFileIfUnmodified,
    RemoveSymlink,
    RemoveTree,
    ReplaceSymlink,
    RunProbe,
    WriteFile,
)
from provision.effects.packages import (
    Index,
    IndexAddresses,
    IndexBinding,
    IndexSource,
    ListedFile,
    PackageSources,
    Pin,
    PythonInstallation,
    PythonSearchResult,
    Release,
    Resolution,
    SourceDistribution,
    UvProject,
    VersionPreference,
)

ProgressCallback = Callable[[str], None]
"""Receives one line of progress."""

Effect = LocalEffect | GoogleCloudEffect | ColabEffect

__all__ = [
    "AwaitReport",
    "CloudReader",
    "ColabEffect",
    "CondaChannel",
    "CondaMatchSpec",
    "CondaProgram",
    "CondaRecord",
    "CondaSolveRequest",
    "CreateCondaPrefix",
    "CreateInstance",
    "CreateSymlink",
    "CreateVenv",
    "Damage",
    "DeleteInstance",
    "DeleteObjects",
    "Effect",
    "GoogleCloudEffect",
    "Index",
    "IndexAddresses",
    "IndexBinding",
    "IndexSource",
    "InstallPackages",
    "InstallPython",
    "InstanceEffect",
    "ListedFile",
    "LocalEffect",
    "MakeFolder",
    "MonitorRequest",
    "MoveFile",
    "PackageSources",
    "Pin",
    "ProgressCallback",
    "PythonInstallation",
    "PythonSearchResult",
    "Reader",
    "Release",
    "RemoveFileIfUnmodified",
    "RemoveSymlink",
    "RemoveTree",
    "ReplaceSymlink",
    "ResizeDisk",
    "Resolution",
    "RunOnColab",
    "RunProbe",
    "SourceDistribution",
    "StartInstance",
    "StopColabSession",
    "StopInstance",
    "System",
    "UpdateInstance",
    "UploadObjects",
    "UvProject",
    "VersionPreference",
    "WriteFile",
]


class Reader(Protocol):
    """What may be asked of the world without changing it."""

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the calling process."""

    def read(self, path: Path, limit: int) -> bytes:
        """Return the content of a regular file.

        Raises WorldError when it is missing, no regular file, not readable, or longer than
        `limit` bytes.
        """

    def exists(self, path: Path) -> bool:
        """Tell whether something is at `path`; a link whose end is gone counts as nothing."""

    def read_link(self, path: Path) -> str | None:
        """Return what the symbolic link at `path` points at, as it is written; None where there is
        no link.
        """

    def list_folder(self, path: Path) -> tuple[str, ...]:
        """Return the sorted names in a folder; () when there is none."""

    def find_damage(
        self,
        environment: Path,
        minor: str,
        names: tuple[str, ...],
        *,
        hashed: bool = False,
        shared: bool = False,
    ) -> Damage:
        """Return how the files of these packages differ from what was installed in an environment;
        packages that are not there are left out.

        Each file is looked at once (about 8 ms for 1000 files), and read only where its size or
        time of change is another one than was noted when it was
        installed; with `hashed` all are read. `shared`: another program put packages there too,
        so a file that no package lists is not looked for.
        """

    def find_running_programs(self, environment: Path) -> tuple[str, ...]:
        """Return the programs that run in an environment and were started by `provision run` or as
        a Jupyter kernel, as "process PID: PROGRAM".
        """

    def is_writable(self, path: Path) -> bool:
        """Tell whether `path`, or the nearest folder above it that exists, may be written to."""

    def find_pythons(self, minor: str) -> PythonSearchResult:
        """Return what Pythons this machine has, and which one fits."""

    def find_package_sources(self, indexes: tuple[Index, ...], minor: str) -> PackageSources:
        """Return where packages for Python `minor` come from on this machine: mirrors, overrides
        and local folders counted.
        """

    def conda_program(self) -> CondaProgram | None:
        """Return what makes conda environments on this machine; None without the extra `conda`,
        which every way of making them needs.
        """

    def conda_folders(self, program: CondaProgram) -> tuple[Path, ...]:
        """Return the folders in which the user's own conda looks for environments by name, in its
        order; () where it does not tell.
        """

    def channel_addresses(self, channels: tuple[CondaChannel, ...]) -> Mapping[str, str]:
        """Return the address of each conda channel by name, ending in a slash, as it holds on any
        machine: a mirror of this one's is not it.

        Raises WorldError naming what to install without the extra `conda`.
        """

    def find_index_addresses(self, indexes: tuple[Index, ...], minor: str) -> IndexAddresses:
        """Return where an installer on this machine finds each of these indexes and the default
        one, which is left out where it is uv's own.
        """

    def list_index_files(
        self, questions: Sequence[tuple[str, IndexSource]]
    ) -> Mapping[tuple[str, str], tuple[ListedFile, ...] | None]:
        """Return the files that indexes list, by (package, index name); None when the index does
        not know the package. `questions` are canonical names.

        Several are asked at once; may block for minutes. Raises NetworkError when an index
        cannot be reached, or when its answer cannot be read.
        """

    def list_conda_files(
        self, records: Sequence[CondaRecord], channels: tuple[CondaChannel, ...]
    ) -> Mapping[tuple[str, str, str], str]:
        """Return the sha256 ("" for none) of what conda channels list now under the names of
        records, by (channel, subdir, file). May block.

        Raises NetworkError when a channel cannot be reached, WorldError naming what to install
        without the extra `conda`.
        """

    def platform(self) -> str:
        """Return this machine's platform, such as "linux-x86_64"."""

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return those Debian packages that are not installed; None where that cannot be told (no
        dpkg).
        """

    def cloud(self) -> CloudReader:
        """Return what Google Cloud is asked through; raises WorldError naming what to install when
        the extra `workbench` is missing.
        """


class System(Reader, Protocol):
    """The outside, for commands that change it."""

    def resolve(self, project: UvProject, tell: ProgressCallback) -> Resolution:
        """Resolve a project to one set of versions.

        Raises LockError with uv's derivation when there is none, NetworkError when an index
        cannot be reached.
        """

    def solve_conda(
        self, ask: CondaSolveRequest, tell: ProgressCallback
    ) -> tuple[CondaRecord, ...]:
        """Return what satisfies an ask of conda channels, for the virtual packages that it names
        and not for those of this machine.

        Raises Unsatisfiable when nothing does, NetworkError when a channel cannot be reached,
        WorldError naming what to install without the extra `conda`.
        """

    def find_newest_release(self, project: UvProject) -> Release:
        """Return the newest release that a project's only requirement admits, wheels or not:
        nothing of it is fetched or run.

        Raises LockError when there is none, NetworkError when an index cannot be reached.
        """

    def create_metadata_index(self, release: Release, index: Index | None) -> str:
        """Return the address of an index with a wheel that holds the metadata of a release's source
        distribution, and no code; none of it is run.

        `index` is where the release comes from, None for the default index. Raises LockError
        when the metadata cannot be read, NetworkError.
        """

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        """Perform one effect; raises WorldError (NetworkError) with the reason and the way out."""

    def run(
        self,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        watch: MonitorRequest | None = None,
        *,
        prefix: Path | None = None,
    ) -> int:
        """Run a program with the caller's terminal and return its exit code, negative for the
        signal that ended it.

        It holds the environment `prefix` in use.
        With `watch` a record of what it took is written; without, a World may become the
        program, and then never returns.
        """

    def now(self) -> str:
        """Return the time as 2026-11-20T12:00:00Z."""

    def token(self) -> str:
        """Return 32 fresh random hexadecimal digits."""
