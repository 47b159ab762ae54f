"""The `System` of this machine: it reads and performs, and decides nothing.

Adapters are imported by the methods that use them, since most commands need few of them.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from provision.adapters import files
from provision.adapters.diagnostic_log import log
from provision.effects.service import ServiceEffect
from provision.effects.system import Notice

if TYPE_CHECKING:
    from provision.adapters.google.report_polling import PollingClock
    from provision.adapters.google.retry import RetryPolicy
    from provision.adapters.services import Services
    from provision.adapters.uv.toolchain import UvToolchain
    from provision.effects.code import CodeReader
    from provision.effects.conda import CondaChannel, CondaProgram, CondaRecord, CondaSolveRequest
    from provision.effects.google import CloudReader
    from provision.effects.local import Damage, MonitorRequest
    from provision.effects.machine import MachineResources
    from provision.effects.packages import (
        IndexAddresses,
        IndexSource,
        ListedFile,
        NamedIndex,
        PackageSources,
        PythonSearchResult,
        Release,
        Resolution,
        UvProject,
    )
    from provision.effects.system import Effect, ProgressCallback
    from provision.effects.wheels import BuiltWheel, PackageSource, RepositoryPackage
    from provision.kinds.places import Machine

_PLATFORMS = {
    ("Linux", "x86_64"): "linux-x86_64",
    ("Linux", "aarch64"): "linux-aarch64",
    ("Darwin", "arm64"): "macos-arm64",
    ("Darwin", "x86_64"): "macos-x86_64",
    ("Windows", "AMD64"): "windows-x86_64",
}


class RealSystem:
    """The `System` of this machine and of the services that it reaches.

    Args:
        environment: the caller's variables; those of this process by default.
        offline: restrict uv and conda to their caches.
        endpoints: addresses by service that replace Google's, as the emulator gives them.
        clock: the clock for waiting for the report of a device.
        pace: the policy for waiting for Google's services.
        shared: several threads use it; what they read at the same time is read once.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        offline: bool = False,
        endpoints: Mapping[str, str] | None = None,
        clock: PollingClock | None = None,
        pace: RetryPolicy | None = None,
        shared: bool = False,
    ) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self.offline = offline
        self._service_options = (endpoints, clock, pace)
        self._shared = shared
        self._shown_notes: set[str] = set()

    @cached_property
    def uv(self) -> UvToolchain:
        """Uv as it is set up for the caller."""
        from provision.adapters.uv.toolchain import UvToolchain

        return UvToolchain(self._environment, offline=self.offline)

    @cached_property
    def _services(self) -> Services:
        from provision.adapters.services import Services

        return Services(self._environment, *self._service_options, shared=self._shared)

    def environment(self) -> Mapping[str, str]:
        """See Reader."""
        return self._environment

    def read(self, path: Path, limit: int) -> bytes:
        """See Reader."""
        return files.read(path, limit)

    def exists(self, path: Path) -> bool:
        """See Reader."""
        return path.exists()

    def code(self) -> CodeReader:
        """See Reader."""
        from provision.adapters.code_reader import LocalCodeReader

        return LocalCodeReader(self._environment, offline=self.offline)

    def read_link(self, path: Path) -> str | None:
        """See Reader."""
        return files.read_symlink(path)

    def list_folder(self, path: Path) -> tuple[str, ...]:
        """See Reader."""
        return tuple(sorted(entry.name for entry in path.iterdir())) if path.is_dir() else ()

    def is_writable(self, path: Path) -> bool:
        """See Reader."""
        return files.is_writable(path)

    def now(self) -> str:
        """See System."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def token(self) -> str:
        """See System."""
        return secrets.token_hex(16)

    def platform(self) -> str:
        """See Reader; a platform that is not ours keeps the system's name."""
        pair = (platform.system(), platform.machine())
        return _PLATFORMS.get(pair, "-".join(pair).lower())

    def find_pythons(self, minor: str) -> PythonSearchResult:
        """See Reader."""
        return self.uv.find_pythons(minor)

    def find_package_sources(self, indexes: tuple[NamedIndex, ...], minor: str) -> PackageSources:
        """See Reader."""
        return self.uv.package_sources(indexes, minor)

    def find_index_addresses(self, indexes: tuple[NamedIndex, ...], minor: str) -> IndexAddresses:
        """See Reader."""
        return self.uv.index_addresses(indexes, minor)

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """See Reader."""
        from provision.adapters.process import capture

        if shutil.which("dpkg-query") is None:
            return None
        query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}"]
        states = {name: capture([*query, name], self._environment) for name in names}
        return tuple(
            name for name, state in states.items() if state.code or state.stdout != "installed"
        )

    def machine_resources(self, folder: Path, *, with_gpus: bool) -> MachineResources:
        """See Reader; a container's memory limit counts as memory of the machine."""
        from provision.agent.probe.observing.cgroups import memory_limit
        from provision.effects.machine import MachineResources

        existing = next(path for path in (folder, *folder.parents) if path.exists())
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        gpus, driver = self._read_gpus() if with_gpus else (None, "")
        free_disk = shutil.disk_usage(existing).free
        memory = min(memory, memory_limit(Path("/")) or memory)
        shared = Path("/dev/shm")  # noqa: S108 - its size, not a file in it
        shm = shutil.disk_usage(shared).total if shared.is_dir() else None
        return MachineResources(free_disk, memory, gpus, driver, shm)

    def _read_gpus(self) -> tuple[tuple[str, ...] | None, str]:
        """Return the GPUs by the names in the driver, None without nvidia-smi, and its version."""
        from provision.adapters.process import capture
        from provision.agent.core.nvidia_smi import find_nvidia_smi, parse_rows, query_arguments

        program = find_nvidia_smi(self._environment)
        if program is None:
            return None, ""
        fields = ["name", "driver_version"]
        result = capture([program, *query_arguments(fields)], self._environment)
        rows = parse_rows(result.stdout, fields) if not result.code else []
        return tuple(row["name"] for row in rows), next((row["driver_version"] for row in rows), "")

    def machine(self, folder: Path) -> Machine:
        """See Reader; runs nvidia-smi, and python3 if its version is in no file."""
        from provision.adapters.current_python import find_current_python
        from provision.kinds.places import Machine

        resources = self.machine_resources(folder, with_gpus=True)
        library, version = platform.libc_ver()
        python = find_current_python(self._environment, folder)
        inside = python.path.is_relative_to(folder)
        return Machine(
            python.version,
            self.platform(),
            resources.gpus,
            resources.driver,
            version if library == "glibc" else "",
            self.now()[:10],
            str(python.path.relative_to(folder) if inside else python.path),
        )

    def cloud(self) -> CloudReader:
        """See Reader."""
        return self._services.google

    def conda_program(self) -> CondaProgram | None:
        """See Reader."""
        from provision.adapters.conda import programs

        return programs.find_program(self._environment)

    def conda_folders(self, program: CondaProgram) -> tuple[Path, ...]:
        """See Reader."""
        from provision.adapters.conda import programs

        return programs.environment_folders(program, self._environment)

    def channel_addresses(self, channels: tuple[CondaChannel, ...]) -> Mapping[str, str]:
        """See Reader."""
        from provision.adapters.conda.channels import public_channel_url

        return {channel.name: public_channel_url(channel) for channel in channels}

    def list_index_files(
        self, questions: Sequence[tuple[str, IndexSource]]
    ) -> Mapping[tuple[str, str], tuple[ListedFile, ...] | None]:
        """See Reader; local wheels that replace an index are hashed."""
        from provision.adapters.uv.simple_index import list_files_of_packages

        return list_files_of_packages(questions, self.uv.environment())

    def facts_folder(self, sha256: str) -> Path:
        """See Reader."""
        return files.user_cache_folder(self._environment) / "facts" / sha256

    def find_vulnerabilities(
        self, packages: Sequence[tuple[str, str]], address: str
    ) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """See Reader."""
        from provision.adapters.osv import find_vulnerabilities

        return find_vulnerabilities(packages, address, self.uv.environment())

    def list_conda_files(
        self, records: Sequence[CondaRecord], channels: tuple[CondaChannel, ...]
    ) -> Mapping[tuple[str, str, str], str]:
        """See Reader."""
        from provision.adapters.conda.channels import list_hashes

        return list_hashes(records, channels, self._environment)

    def find_damage(
        self,
        environment: Path,
        minor: str,
        names: tuple[str, ...],
        *,
        hashed: bool = False,
        shared: bool = False,
    ) -> Damage:
        """See Reader."""
        from provision.adapters.environment_damage import find_damage
        from provision.adapters.local_effects import INSTALL_RECORD

        record = environment / INSTALL_RECORD
        return find_damage(environment, record, minor, names, hashed=hashed, shared=shared)

    def find_running_programs(self, environment: Path) -> tuple[str, ...]:
        """See Reader."""
        from provision.adapters.process import list_users

        return list_users(environment)

    def resolve(self, project: UvProject, progress: ProgressCallback) -> Resolution:
        """See System."""
        from provision.adapters.uv.resolution import resolve_project

        sources = self.find_package_sources(project.indexes, project.python)
        self._show_once(sources.notes, progress)
        interpreter = self.uv.any_interpreter(project.python)
        return resolve_project(project, sources, interpreter, self.uv.environment())

    def solve_conda(
        self, request: CondaSolveRequest, progress: ProgressCallback
    ) -> tuple[CondaRecord, ...]:
        """See System."""
        from provision.adapters.conda.channels import override_notes
        from provision.adapters.conda.solver import solve

        self._show_once(override_notes(request.channels, self._environment), progress)
        return solve(request, self._environment, offline=self.offline)

    def find_newest_release(self, project: UvProject) -> Release:
        """See System."""
        from provision.adapters.uv.resolution import newest_release

        sources = self.find_package_sources(project.indexes, project.python)
        interpreter = self.uv.any_interpreter(project.python)
        return newest_release(project, sources, interpreter, self.uv.environment())

    def create_metadata_index(self, release: Release, index: NamedIndex | None) -> str:
        """See System."""
        from provision.adapters.uv.sdist_metadata import create_metadata_index

        sources = self.find_package_sources((index,) if index is not None else (), "")
        source = sources.named[0] if sources.named else sources.default
        return create_metadata_index(release, source, self.uv.environment())

    def create_package_index(self, name: str, version: str, metadata: str) -> str:
        """See System."""
        from provision.adapters.uv.sdist_metadata import create_package_index

        return create_package_index(name, version, metadata, self.uv.environment())

    def fetch_package(self, url: str, revision: str, subdirectory: str) -> RepositoryPackage:
        """See System."""
        from provision.adapters.git_repository import fetch_package

        return fetch_package(url, revision, subdirectory, self._environment, offline=self.offline)

    def build_metadata(self, source: PackageSource, python: str, progress: ProgressCallback) -> str:
        """See System."""
        from provision.adapters.uv.package_builds import build_wheel, read_metadata

        return read_metadata(build_wheel(source, python, self.uv, self._environment, progress))

    def find_wheel(self, source: PackageSource, python: str) -> BuiltWheel | None:
        """See Reader."""
        from provision.adapters.uv.package_builds import find_wheel

        return find_wheel(source, python, self._environment)

    def build_wheel(self, source: PackageSource, python: str, progress: ProgressCallback) -> None:
        """See System."""
        from provision.adapters.uv.package_builds import build_wheel, check_pure_wheel

        wheel = build_wheel(source, python, self.uv, self._environment, progress)
        check_pure_wheel(wheel, source)

    def perform(self, effect: Effect, progress: ProgressCallback) -> None:
        """See System."""
        log.info("perform %s %s", type(effect).__name__, _describe_subject(effect))
        if not isinstance(effect, ServiceEffect):
            from provision.adapters import local_effects

            context = local_effects.LocalContext(
                self._environment, lambda: self.uv, self.now(), self.offline
            )
            local_effects.perform(effect, context, progress)
        else:
            self._services.perform(effect, progress)

    def run(
        self,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        watch: MonitorRequest | None = None,
        *,
        prefix: Path | None = None,
        folder: Path | None = None,
    ) -> int:
        """See System; without `watch` this process becomes the program."""
        from provision.adapters.process import mark_in_use
        from provision.adapters.terminal_program import program_not_found, run_in_terminal

        program = shutil.which(argv[0], path=environment.get("PATH"))
        if program is None:
            raise program_not_found(argv[0])
        if prefix is not None:
            # Arguments may be secrets: program and script distinguish one run from another.
            script = [argument for argument in argv[1:2] if argument.endswith(".py")]
            mark_in_use(prefix, " ".join([Path(argv[0]).name, *script]))
        return run_in_terminal([program, *argv[1:]], environment, watch, folder)

    def _show_once(self, notes: tuple[str, ...], progress: ProgressCallback) -> None:
        for note in notes:
            if note not in self._shown_notes:
                self._shown_notes.add(note)
                progress(Notice(note))


def _describe_subject(effect: Effect) -> str:
    """Return the path or name that an effect concerns; its content may be secret."""
    fields = ("path", "name", "instance", "session", "prefix", "minor")
    values = (getattr(effect, field, None) for field in fields)
    return next((str(value) for value in values if isinstance(value, str | Path)), "")
