"""From a spec to a lock: uv resolves once over all platforms, and every file is named by index and hash."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from packaging.markers import Marker
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from provision.effects import Index, Preference, Project, Resolution, Tell, World
from provision.errors import LockError
from provision.facts import Facts
from provision.lock.asked import asked_of, flavour_of
from provision.lock.model import Environment, File, Lock, Package, environment_digest, sealed
from provision.spec import Spec

_MARKERS = {
    "linux-x86_64": ("linux", "x86_64", "Linux", "posix"),
    "linux-aarch64": ("linux", "aarch64", "Linux", "posix"),
    "macos-arm64": ("darwin", "arm64", "Darwin", "posix"),
    "windows-x86_64": ("win32", "AMD64", "Windows", "nt"),
}
_LINUX = ("linux-x86_64", "linux-aarch64")
_CUDA_ONLY = re.compile(
    r"^(nvidia-.+-cu\d+|nvidia-(cublas|cudnn|nccl|cuda|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|cufile|cusparselt|nvshmem).*|cuda-(bindings|toolkit|pathfinder)|(pytorch-)?triton)$"
)
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_|manylinux(1|2010|2014)_")
_OLD_GLIBC = {"1": (2, 5), "2010": (2, 12), "2014": (2, 17)}


@dataclass(frozen=True, slots=True)
class _Question:
    """What is being locked: the spec, the torch flavour it asks for, and the platforms that count."""

    spec: Spec
    facts: Facts
    flavour: str
    platforms: tuple[str, ...]
    preferences: tuple[Preference, ...] = ()


def resolve(spec: Spec, facts: Facts, world: World, tell: Tell, *, keep: Lock | None = None) -> Lock:
    """Return the lock of a spec; versions of `keep` stay where they still fit.

    Torch and its family are bound to the index of their flavour on Linux, also where only another package brings them in. Raises LockError when no set of
    versions exists, NetworkError when an index is out of reach, and LockError when a CPU spec would bring CUDA packages.
    """
    flavour = flavour_of(spec.at(next(iter(spec.targets))))
    kept = _preferences(keep) if keep is not None else ()
    question = _Question(spec, facts, flavour, tuple(sorted(_platforms(spec))), kept)
    direct = {package.key for package in spec.packages}
    while True:
        project = _project(question, direct)
        resolution = world.resolve(project, tell)
        found = tomllib.loads(resolution.pylock)["packages"]
        hidden = {row["name"] for row in found} & facts.flavoured - direct
        if not hidden:
            return _lock(question, project, resolution, found)
        direct |= hidden  # uv binds direct requirements only, so what came in unasked is asked for by name, and resolved again


def _preferences(lock: Lock) -> tuple[Preference, ...]:
    markers = {environment.key: _marker(environment.platform) for environment in lock.environments}
    everywhere = tuple(markers)
    return tuple(
        Preference(p.name, p.version, p.index, () if p.environments == everywhere else tuple(markers[key] for key in p.environments)) for p in lock.packages
    )


def _platforms(spec: Spec) -> set[str]:
    local = {str(platform) for platform in spec.platforms} if any(target.kind == "local" for target in spec.targets.values()) else set()
    return local | ({"linux-x86_64"} if any(target.kind != "local" for target in spec.targets.values()) else set())


def _project(question: _Question, direct: set[str]) -> Project:
    spec = question.spec
    family = tuple(sorted(name for name in direct if name in question.facts.flavoured))
    torch_index = _torch_index(question, family)
    own = tuple(Index(name, index.url) for name, index in sorted(spec.indexes.items()) if torch_index is None or name != torch_index.name)
    bindings = [(package.key, package.index, "") for package in spec.packages if package.index]
    if torch_index is not None:
        bindings += [(name, torch_index.name, "sys_platform == 'linux'") for name in family if name not in {bound for bound, _, _ in bindings}]
    requirements = [package.requirement for package in spec.packages] + sorted(direct - {package.key for package in spec.packages})
    indexes = (*own, *([torch_index] if torch_index is not None else []))
    environments = tuple(_marker(platform) for platform in question.platforms)
    return Project(spec.python, f"=={spec.python}.*", tuple(requirements), indexes, tuple(bindings), environments, spec.exclude_newer, question.preferences)


def _torch_index(question: _Question, family: tuple[str, ...]) -> Index | None:
    linux = tuple(platform for platform in question.platforms if platform in _LINUX)
    if not family or not linux:
        return None
    name = f"pytorch-{question.flavour}"
    asked = {package.key: f"{package.key}{package.version}" for package in question.spec.packages}
    wanted = tuple(asked.get(member, member) for member in family)
    url = question.spec.indexes[name].url if name in question.spec.indexes else question.facts.flavour_index(question.flavour)
    return Index(name, url, question.flavour, wanted, linux)


def _marker(platform: str) -> str:
    system, machine, _, _ = _MARKERS[platform]
    return f"sys_platform == '{system}' and platform_machine == '{machine}'"


def _lock(question: _Question, project: Project, resolution: Resolution, found: list[dict[str, Any]]) -> Lock:
    spec = question.spec
    flavour = question.flavour if any(row["name"] == "torch" for row in found) else None
    keys = {platform: f"{platform}-{flavour}" if flavour else platform for platform in question.platforms}
    unsorted = (_package(row, question, project, keys, resolution) for row in found)
    packages = tuple(sorted((package for package in unsorted if package.environments), key=lambda p: (p.name, p.version)))
    if flavour == "cpu":
        _refuse_cuda(packages, spec)
    environments = tuple(_environment(keys[platform], platform, flavour, spec, packages) for platform in question.platforms)
    targets = {name: tuple(e.key for e in environments if _serves(spec, name, e.platform)) for name in spec.targets}
    used = {package.index for package in packages}
    indexes = {index.name: index.url for index in project.indexes if index.name in used}
    return sealed(Lock(asked_of(spec), spec.python, environments, targets, indexes, packages))


def _serves(spec: Spec, target: str, platform: str) -> bool:
    return platform in spec.platforms if spec.targets[target].kind == "local" else platform == "linux-x86_64"


def _environment(key: str, platform: str, flavour: str | None, spec: Spec, packages: tuple[Package, ...]) -> Environment:
    held = tuple(package for package in packages if key in package.environments)
    floors = [floor for package in held if (floor := _glibc(package, spec.python, platform))]
    glibc = ".".join(str(part) for part in max(floors)) if floors else None
    digest = environment_digest(spec.python, platform, flavour, tuple(_on(package, spec.python, platform) for package in held))
    return Environment(key, platform, flavour, _because(spec.at(next(iter(spec.targets))), flavour), glibc, digest)


def _on(package: Package, python: str, platform: str) -> Package:
    """Return the package with the files of one platform only, so that another platform's do not change the digest."""
    return replace(package, files=tuple(file for file in package.files if _runs_on(file.name, python, platform)))


def _because(spec: Spec, flavour: str | None) -> str:
    if flavour is None:
        return "no torch among the packages"
    if flavour == "cpu":
        return f"cpu: the spec says gpu: {spec.gpu.type}"
    return f"{flavour}: the spec says cuda: {spec.cuda}"


@cache
def _requires(graph: str) -> dict[tuple[str, str], tuple[str, ...]]:
    rows = tomllib.loads(graph)["package"]
    needs = {}
    for row in rows:
        extras = [needed for extra in row.get("optional-dependencies", {}).values() for needed in extra]
        needs[row["name"], row.get("version", "")] = tuple(sorted({needed["name"] for needed in (*row.get("dependencies", []), *extras)} - {row["name"]}))
    return needs


def _package(row: Mapping[str, Any], question: _Question, project: Project, keys: Mapping[str, str], resolution: Resolution) -> Package:
    platforms = tuple(platform for platform in keys if _applies(row.get("marker", ""), platform, question.spec.python))
    files = {_file_name(wheel): wheel["hashes"]["sha256"] for wheel in row.get("wheels", ())}
    kept = tuple(File(name, value) for name, value in sorted(files.items()) if any(_runs_on(name, question.spec.python, p) for p in platforms))
    index = _index_of(row["name"], platforms, question.spec.python, project)
    sources = resolution.sources
    local = {wheel.name for source in sources.named for wheel in source.wheels} | {wheel.name for wheel in sources.wheels}
    unconfirmed = any(file.name in local and question.facts.wheels.get(file.name) != file.sha256 for file in kept)
    for platform in platforms:
        if not any(_runs_on(file.name, question.spec.python, platform) for file in kept):
            _refuse_without_wheel(row, platform, question)
    requires = _requires(resolution.graph).get((row["name"], row["version"]), ())
    return Package(row["name"], row["version"], index, tuple(keys[p] for p in platforms), requires, kept, unconfirmed)


def _index_of(name: str, platforms: tuple[str, ...], python: str, project: Project) -> str:
    """Return the index that a package is bound to where it is held. Addresses would not tell: two indexes may share one mirror."""
    bound = [(index, marker) for package, index, marker in project.bindings if package == name]
    return next((index for index, marker in bound if any(_applies(marker, platform, python) for platform in platforms)), "pypi")


def _applies(marker: str, platform: str, python: str) -> bool:
    system, machine, name, kind = _MARKERS[platform]
    environment = {"sys_platform": system, "platform_machine": machine, "platform_system": name, "os_name": kind, "python_version": python, "extra": ""}
    environment |= {"python_full_version": f"{python}.99", "implementation_name": "cpython", "platform_python_implementation": "CPython"}
    return not marker or Marker(marker).evaluate(environment)


def _file_name(wheel: Mapping[str, Any]) -> str:
    return str(wheel["name"]) if "name" in wheel else unquote(urlsplit(wheel.get("url", wheel.get("path", ""))).path).rsplit("/", 1)[-1]


def _runs_on(name: str, python: str, platform: str) -> bool:
    try:
        _, _, _, tags = parse_wheel_filename(name)
    except InvalidWheelFilename:
        return False
    tags = frozenset(tag for tag in tags if (tag.interpreter, tag.abi) in _abis(python))
    system, machine, _, _ = _MARKERS[platform]
    starts = {"linux": ("manylinux", "linux_"), "darwin": ("macosx",), "win32": ("win",)}[system]
    ends = (machine.lower(), "universal2") if system == "darwin" else (machine.lower(),)
    return any(tag.platform == "any" or (tag.platform.startswith(starts) and tag.platform.endswith(ends)) for tag in tags)


@cache
def _abis(python: str) -> frozenset[tuple[str, str]]:
    """Return the (interpreter, ABI) pairs of wheels that run on a CPython version such as "3.11"."""
    major, _, minor = python.partition(".")
    version, here = (int(major), int(minor)), f"cp{major}{minor}"
    accepted = [*cpython_tags(version, [here], ["any"]), *compatible_tags(version, here, ["any"])]
    return frozenset((tag.interpreter, tag.abi) for tag in accepted)


def _refuse_without_wheel(row: Mapping[str, Any], platform: str, question: _Question) -> NoReturn:
    raise LockError(
        f"{row['name']} {row['version']} has no wheel for Python {question.spec.python} on {platform}",
        why=f"its files: {', '.join(_file_name(wheel) for wheel in row.get('wheels', ())[:5]) or 'source only'}",
        hint="choose a version that has one, or another `python`",
    )


def _glibc(package: Package, python: str, platform: str) -> tuple[int, int] | None:
    """Return the oldest glibc that one of the package's wheels for the platform runs on."""
    if platform not in _LINUX:
        return None
    floors = []
    for file in package.files:
        if not _runs_on(file.name, python, platform):
            continue
        stated = [_OLD_GLIBC[old] if old else (int(major), int(minor)) for major, minor, old in _GLIBC.findall(file.name)]
        if not stated:
            return None
        floors.append(min(stated))
    return min(floors, default=None)


def _refuse_cuda(packages: tuple[Package, ...], spec: Spec) -> None:
    for package in packages:
        on_linux = any(key.startswith("linux") for key in package.environments)
        builds_cuda = package.name == "torch" and on_linux and not package.version.endswith("+cpu")
        if on_linux and (_CUDA_ONLY.match(package.name) or builds_cuda):
            path = " <- ".join(_brought_by(package.name, packages, {p.key for p in spec.packages}))
            raise LockError(
                f"a CPU spec would install {package.name} {package.version}, which is for CUDA",
                why=f"brought in by {path}",
                hint="drop the package that needs it, or set `gpu:` and `cuda:` to what the work needs",
            )


def _brought_by(name: str, packages: tuple[Package, ...], direct: set[str]) -> Iterator[str]:
    seen = set()
    while name not in seen:
        yield name
        seen.add(name)
        if name in direct:
            return
        name = next((package.name for package in packages if name in package.requires and package.name not in seen), name)
