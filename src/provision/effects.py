"""All we ever ask of or do to the world: what a Reader can tell, and the closed set of effects a World performs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

Tell = Callable[[str], None]
"""Receives one line of progress."""


class Interpreter(NamedTuple):
    """A CPython found on this machine: full version such as "3.11.7" and absolute path."""

    version: str
    path: Path

    @property
    def minor(self) -> str:
        """Major and minor version, such as "3.11"."""
        return ".".join(self.version.split(".")[:2])


class Interpreters(NamedTuple):
    """What was found for one Python version: the one to use, all that exist, and whether uv could fetch it."""

    wanted: str
    chosen: Interpreter | None
    found: tuple[Interpreter, ...]
    fetchable: bool


class Index(NamedTuple):
    """A named index that a project binds packages to, at its canonical address.

    `flavour` is the local version label of its wheels ("cpu", "cu128"), None for an index of another kind. A local folder may stand in for such an index
    when it holds a wheel that fits every one of `packages` (requirements) in that flavour for every one of `platforms`.
    """

    name: str
    url: str
    flavour: str | None = None
    packages: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class Preference:
    """A version to keep: canonical name, exact version, index name, and the environments (PEP 508 markers) that it is for; none means all."""

    name: str
    version: str
    index: str
    markers: tuple[str, ...] = ()


class Binding(NamedTuple):
    """A package that comes from a named index only, where the marker holds ("": everywhere) and in one variant of the project ("": in all)."""

    package: str
    source: str
    marker: str = ""
    variant: str = ""


class Project(NamedTuple):
    """What uv is asked to resolve or install: requirements, the indexes they are bound to, and the environments that count.

    `environments` are PEP 508 markers, one a platform; `preferences` are versions to keep where they still fit, `constraints` versions that nothing may
    leave. `variants` (name to requirements) exclude each other, such as builds of torch; where there are some, `requirements` is empty.
    `undated` are packages whose index tells no day of upload, so that `exclude_newer` cannot hold for them.
    """

    python: str
    requires_python: str
    requirements: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    bindings: tuple[Binding, ...] = ()
    environments: tuple[str, ...] = ()
    exclude_newer: str | None = None
    preferences: tuple[Preference, ...] = ()
    constraints: tuple[str, ...] = ()
    variants: tuple[tuple[str, tuple[str, ...]], ...] = ()
    undated: tuple[str, ...] = ()


class IndexSource(NamedTuple):
    """Where an index is on this machine: its address ("" for uv's own default), and the wheels that stand in for it, if any do."""

    name: str
    url: str
    wheels: tuple[Path, ...] = ()

    @property
    def of_this_machine(self) -> bool:
        """Whether what it serves lies on this machine, so that no index has confirmed it."""
        parts = urlsplit(self.url)
        return bool(self.wheels) or parts.scheme == "file" or parts.hostname in ("localhost", "::1") or (parts.hostname or "").startswith("127.")


class Sources(NamedTuple):
    """Where packages come from on this machine: the default index, the named ones, further wheels, and what a person should know about that."""

    default: IndexSource
    named: tuple[IndexSource, ...] = ()
    wheels: tuple[Path, ...] = ()
    links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Addresses(NamedTuple):
    """Where an installer on this machine finds indexes, by name, and further places of wheels."""

    indexes: Mapping[str, str]
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)  # a named tuple has a method called index
class Pin:
    """One locked package as an installer needs it: canonical name, exact version, the index it is bound to (None: the default one), sha256 of every file.

    `build`: one of these files is a source distribution, and may be built.
    """

    name: str
    version: str
    index: str | None
    hashes: tuple[str, ...]
    built: bool = False
    """Whether its files are source, so that it is built as it is installed."""


class Resolution(NamedTuple):
    """What uv answered: its lock (TOML) with the dependency graph, and for every variant ("" where there is one) the PEP 751 export with files and hashes."""

    graph: str
    pylocks: Mapping[str, str]
    sources: Sources


class SourceFile(NamedTuple):
    """A source distribution on an index: file name, address, sha256 (hexadecimal)."""

    name: str
    url: str
    sha256: str


class Release(NamedTuple):
    """One release of a package as an index lists it: the names of its wheels, and its source distribution if it has one."""

    package: str
    version: str
    wheels: tuple[str, ...]
    source: SourceFile | None


# The effects. Each names everything it needs; performing one twice is safe.


class InstallPython(NamedTuple):
    """Let uv fetch a managed CPython of this minor version."""

    minor: str


class CreateVenv(NamedTuple):
    """Make an empty virtual environment at `path` with an interpreter of this minor version, in place of anything there."""

    path: Path
    minor: str


class InstallPackages(NamedTuple):
    """Install exactly these pins, every file checked against its hash: wheels, then what is built from source with them.

    How each came there is kept in the environment's installed.json.
    """

    environment: Path
    minor: str
    pins: tuple[Pin, ...]
    indexes: tuple[Index, ...] = ()


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
    """Give a file in a folder of ours another place on the same disk; nothing happens when it is gone already."""

    path: Path
    to: Path


class RemoveUnchanged(NamedTuple):
    """Remove a file of ours outside our own folder, as long as its sha256 is the one that we wrote; what someone has changed stays, and that is told."""

    path: Path
    sha256: str


class PointLink(NamedTuple):
    """Make the symbolic link `path` point at `target`, in place of an older link of ours."""

    path: Path
    target: str


class RunProbe(NamedTuple):
    """Run the probe in an environment; its report appears at `report`. `environment` is added to the caller's."""

    python: Path
    parcel: Path
    expectations: Path
    report: Path
    timeout_s: int
    environment: tuple[tuple[str, str], ...] = ()
    only: tuple[str, ...] = ()


# What is done to Google Cloud. A `name` is projects/PROJECT/locations/ZONE/instances/INSTANCE; a body is the REST JSON of Notebooks v2.


class UploadObjects(NamedTuple):
    """Write objects (gs:// address and content) to Cloud Storage, those that are there with the same content left alone."""

    objects: tuple[tuple[str, bytes], ...]


class CreateInstance(NamedTuple):
    """Create an instance in the first of these zones that has the machine, and wait until it is ACTIVE; a failed shell goes before the next zone is tried.

    `request` is the UUID that makes a repeated call the same request. One that exists under this name in any of the zones is taken as it is.
    """

    project: str
    zones: tuple[str, ...]
    instance: str
    body: Mapping[str, Any]
    request: str


class UpdateInstance(NamedTuple):
    """Change fields of an instance in place: `body` holds no more than `mask` names (paths as in gceSetup.metadata, joined by commas)."""

    name: str
    body: Mapping[str, Any]
    mask: str


class StopInstance(NamedTuple):
    """Stop an instance and wait until it is; nothing happens when it is stopped already."""

    name: str


class StartInstance(NamedTuple):
    """Start an instance and wait until it is ACTIVE; nothing happens when it is already."""

    name: str


class DeleteInstance(NamedTuple):
    """Delete an instance with its disks and wait until it is gone; nothing happens when it is gone already."""

    name: str


class DeleteObjects(NamedTuple):
    """Delete every object in Cloud Storage below an address of ours that ends in a slash."""

    prefix: str


class AwaitReport(NamedTuple):
    """Wait at most `timeout_s` seconds for the report of one run on a device, and file it at `report`.

    `bucket_uri` is the folder of the run (gs://BUCKET/PREFIX/INSTANCE/NONCE/). Only what carries `nonce`, and the sha256 that the device told, is accepted.
    """

    name: str
    project: str
    zone: str
    bucket_uri: str
    nonce: str
    report: Path
    timeout_s: int


OnGoogleCloud = UploadObjects | CreateInstance | UpdateInstance | StopInstance | StartInstance | DeleteInstance | DeleteObjects | AwaitReport
OnThisMachine = InstallPython | CreateVenv | InstallPackages | WriteFile | MakeFolder | MoveFile | PointLink | RemoveTree | RemoveUnchanged | RunProbe
Effect = OnThisMachine | OnGoogleCloud


class CloudReader(Protocol):
    """What may be asked of Google Cloud without changing it. All of it raises CloudError (credentials, roles, a switched off API) with the way out."""

    def instance(self, name: str) -> Mapping[str, Any] | None:
        """Return an instance as Notebooks v2 tells it, None when there is none."""

    def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
        """Return the instances of a project in all zones."""

    def config(self, project: str, zone: str) -> Mapping[str, Any] | None:
        """Return what Workbench offers in a zone (getConfig); None when that cannot be told."""

    def guest_attributes(self, name: str, namespace: str) -> dict[str, str] | None:
        """Return the guest attributes of an instance; {} when none is written yet, None when they cannot be read (switched off, no role)."""

    def serial_output(self, name: str, start: int) -> tuple[str, int]:
        """Return the serial console's text from a position on, and the position after it."""

    def object(self, uri: str, limit: int) -> bytes | None:
        """Return an object of Cloud Storage, at most `limit` bytes; None when there is none."""

    def quotas(self, project: str, region: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the quotas of a region (metric, limit, usage); None when they cannot be read."""

    def accelerator_types(self, project: str, zone: str) -> tuple[Mapping[str, Any], ...] | None:
        """Return the accelerators that a zone has at all (name, maximumCardsPerInstance); None when that cannot be read."""


class Reader(Protocol):
    """What may be asked of the world without changing it."""

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the calling process."""

    def read(self, path: Path, limit: int) -> bytes:
        """Return the content of a regular file.

        Raises WorldError when it is missing, no regular file, not readable, or longer than `limit` bytes.
        """

    def exists(self, path: Path) -> bool:
        """Tell whether something is at `path`; a link whose end is gone counts as nothing."""

    def entries(self, path: Path) -> tuple[str, ...]:
        """Return the sorted names in a folder; () when there is none."""

    def writable(self, path: Path) -> bool:
        """Tell whether `path`, or the nearest folder above it that exists, may be written to."""

    def interpreters(self, minor: str) -> Interpreters:
        """Return what Pythons this machine has, and which one fits."""

    def sources(self, indexes: tuple[Index, ...], minor: str) -> Sources:
        """Return where packages for Python `minor` come from on this machine: mirrors, overrides and local folders counted."""

    def addresses(self, indexes: tuple[Index, ...], minor: str) -> Addresses:
        """Return where an installer on this machine finds each of these indexes and the default one, which is left out where it is uv's own."""

    def platform(self) -> str:
        """Return this machine's platform, such as "linux-x86_64"."""

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return those Debian packages that are not installed; None where that cannot be told (no dpkg)."""

    def cloud(self) -> CloudReader:
        """Return what Google Cloud is asked through; raises WorldError naming what to install when the extra `workbench` is missing."""


class World(Reader, Protocol):
    """The outside, for commands that change it."""

    def resolve(self, project: Project, tell: Tell) -> Resolution:
        """Resolve a project to one set of versions.

        Raises LockError with uv's derivation when there is none, NetworkError when an index cannot be reached.
        """

    def newest(self, project: Project) -> Release:
        """Return the newest release that a project's only requirement admits, wheels or not: nothing of it is fetched or run.

        Raises LockError when there is none, NetworkError when an index cannot be reached.
        """

    def stand_in(self, release: Release, index: Index | None) -> str:
        """Return the address of an index with a wheel that holds the metadata of a release's source distribution, and no code; none of it is run.

        `index` is where the release comes from, None for the default index. Raises LockError when the metadata cannot be read, NetworkError.
        """

    def perform(self, effect: Effect, tell: Tell) -> None:
        """Perform one effect; raises WorldError (NetworkError) with the reason and the way out."""

    def run(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> int:
        """Run a program with the caller's terminal and return its exit code; a World may become the program, and then never returns."""

    def now(self) -> str:
        """Return the time as 2026-11-20T12:00:00Z."""

    def token(self) -> str:
        """Return 32 fresh random hexadecimal digits."""
