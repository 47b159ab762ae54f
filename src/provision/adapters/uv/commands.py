"""The calls of uv: what it is given, and with which environment."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.adapters.process import ProcessResult, capture
from provision.adapters.uv.errors import error_from_output, python_install_error
from provision.adapters.uv.pip_config import PipConfig
from provision.agent.install.scratch_project import (
    build_index_variables,
    index_lines,
    project_lines,
    remove_credentials,
)
from provision.agent.install.uv_environment import scrub_environment
from provision.effects import (
    CreateVenv,
    IndexBinding,
    IndexSource,
    InstallPackages,
    InstallPython,
    PackageSources,
    PythonInstallation,
    Release,
    Resolution,
    SourceDistribution,
    UvProject,
)
from provision.errors import ExternalError, LockError, ProvisionError
from provision.sanitize import escape_control, redact

if TYPE_CHECKING:
    from provision.agent.core.process import ProcessResult as InstallerResult

_EXPORT = (
    "export",
    "--frozen",
    "--no-emit-project",
    "--format",
    "pylock.toml",
    "--no-header",
    "--quiet",
    "--output-file",
    "pylock.toml",
)


def isolated_environment(environment: Mapping[str, str], pip: PipConfig) -> dict[str, str]:
    """Return an environment for uv in which nothing foreign decides the result: no configuration,
    no downloads of Python, pip's proxy and certificates.
    """
    return scrub_environment(environment, pip.proxy, pip.cert)


def resolve_project(
    project: UvProject,
    sources: PackageSources,
    interpreter: PythonInstallation,
    environment: Mapping[str, str],
) -> Resolution:
    """Resolve a project to one set of versions over all its environments: `uv lock`, then `uv
    export` (two calls, the second needs no network).

    An interpreter of another version than the project's will do: the project's own is then asked
    for by markers, which uv narrows the resolution to.
    Raises LockError with uv's derivation, NetworkError when an index is out of reach, WorldError
    for the rest.
    """
    with _scratch_project(
        project if interpreter.minor == project.python else _with_python_markers(project),
        sources,
        environment,
    ) as (folder, urls):
        passed = {**environment, **_location_variables(sources, folder)}
        if project.preferences:
            (folder / "uv.lock").write_text(_preferences_lock(project, urls), encoding="utf-8")
        _run_uv(
            [
                "lock",
                "--python",
                str(interpreter.path),
                "--quiet",
                "--no-build",
                *_exclude_newer_options(project),
            ],
            passed,
            folder,
            project,
            sources,
        )
        pylocks = {}
        for variant in [name for name, _ in project.variants] or [""]:
            _run_uv(
                [*_EXPORT, *(["--extra", variant] if variant else [])],
                passed,
                folder,
                project,
                sources,
            )
            pylocks[variant] = (folder / "pylock.toml").read_text(encoding="utf-8")
        return Resolution((folder / "uv.lock").read_text(encoding="utf-8"), pylocks, sources)


def newest_release(
    project: UvProject,
    sources: PackageSources,
    interpreter: PythonInstallation,
    environment: Mapping[str, str],
) -> Release:
    """Return the newest release that the only requirement of a project admits, wheels or source.

    uv is told what the package needs (nothing), so that it neither fetches nor builds it. Raises
    as `resolve` does.
    """
    (name,) = (canonicalize_name(Requirement(line).name) for line in project.requirements)
    with _scratch_project(
        project if interpreter.minor == project.python else _with_python_markers(project),
        sources,
        environment,
    ) as (folder, urls):
        passed = {**environment, **_location_variables(sources, folder)}
        (folder / "given.toml").write_text(
            f"[[dependency-metadata]]\nname = {json.dumps(name)}\nrequires-dist = []\n",
            encoding="utf-8",
        )
        if project.preferences:
            (folder / "uv.lock").write_text(_preferences_lock(project, urls), encoding="utf-8")
        _run_uv(
            [
                "lock",
                "--config-file",
                "given.toml",
                "--python",
                str(interpreter.path),
                "--quiet",
                *_exclude_newer_options(project),
            ],
            passed,
            folder,
            project,
            sources,
        )
        _run_uv([*_EXPORT, "--config-file", "given.toml"], passed, folder, project, sources)
        row = next(
            row
            for row in tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8"))[
                "packages"
            ]
            if row["name"] == name
        )
        source = row.get("sdist")
        found = (
            SourceDistribution(
                _file_name(source),
                _file_url(source, folder),
                source.get("hashes", {}).get("sha256", ""),
            )
            if source
            else None
        )
        return Release(
            name, row["version"], tuple(_file_name(wheel) for wheel in row.get("wheels", ())), found
        )


def install_packages(
    effect: InstallPackages, sources: PackageSources, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Make the environment hold the pins, and nothing else unless it is shared, and return how each
    package came there (see provision.agent.install.installer).
    """
    from provision.agent.install.document import (
        DEFAULT_INDEX,
        InstallError,
        InstallMode,
        InstallRequest,
        Pin,
    )
    from provision.agent.install.installer import UvFailed
    from provision.agent.install.installer import install_packages as bring

    pins = tuple(
        Pin(pin.name, pin.version, pin.index, pin.hashes, pin.from_source) for pin in effect.pins
    )
    indexes = {
        DEFAULT_INDEX: sources.default.url,
        **{source.name: index_url(source, environment) for source in sources.named},
    }
    with tempfile.TemporaryDirectory(prefix="provision-") as folder:
        wanted = InstallRequest(
            InstallMode.SHARED if effect.shared else InstallMode.OWN,
            str(effect.environment / "bin/python"),
            effect.minor,
            pins,
            indexes,
            _wheel_links(sources, Path(folder)),
            reinstall=frozenset(effect.reinstall),
        )
        try:
            return bring(wanted, _uv_program(), environment, _run_for_installer, Path(folder))
        except UvFailed as error:
            raise _error_from_call("pip", error.code, error.output, None, sources) from None
        except InstallError as error:
            kind = LockError if error.exit_code == 1 else ExternalError
            raise kind(error.what, why=escape_control(error.why), hint=error.hint) from None


def create_venv(effect: CreateVenv, interpreter: Path, environment: Mapping[str, str]) -> None:
    """Make an empty environment; what was at the path is removed by uv."""
    _run_uv(
        ["venv", "--quiet", "--clear", "--python", str(interpreter), str(effect.path)],
        environment,
        None,
        None,
        None,
    )


def install_python(effect: InstallPython, environment: Mapping[str, str]) -> None:
    """Fetch a managed CPython: the one call that may download an interpreter."""
    # Not --quiet, which leaves out why it failed.
    answer = capture(
        [_uv_program(), "python", "install", "--no-progress", effect.minor],
        {**environment, "UV_PYTHON_DOWNLOADS": "manual"},
    )
    if answer.code != 0:
        raise python_install_error(effect.minor, redact(escape_control(answer.stderr.strip())))


def find_python(minor: str, environment: Mapping[str, str]) -> Path | None:
    """Return the interpreter of this minor version that uv finds outside virtual environments, or
    None.
    """
    answer = capture([_uv_program(), "python", "find", "--system", minor], environment)
    return Path(answer.stdout.strip()) if answer.code == 0 else None


def python_version(python: Path, environment: Mapping[str, str]) -> str | None:
    """Return the full version that an interpreter reports of itself, or None when it does not
    answer within 20 s.
    """
    argv = [str(python), "-I", "-S", "-c", "import platform; print(platform.python_version())"]
    try:
        answer = capture(argv, environment, timeout_s=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.code == 0 else None


def list_pythons(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return (version, path) of every CPython that uv finds on this machine."""
    answer = capture(
        [_uv_program(), "python", "list", "--only-installed", "--output-format", "json"],
        environment,
    )
    rows = json.loads(answer.stdout or "[]")
    return [
        (row["version"], Path(row["path"]))
        for row in rows
        if row["implementation"] == "cpython" and row["path"]
    ]


def default_index_url(environment: Mapping[str, str]) -> str:
    """Return the address of the index that uv asks when nothing names another one; no network."""
    answer = _run_uv(
        ["pip", "compile", "--quiet", "--offline", "--no-header", "--emit-index-url", "-"],
        environment,
        None,
        None,
        None,
    )
    return answer.stdout.split()[1]


def why_not_downloadable(minor: str, environment: Mapping[str, str], downloads: str = "") -> str:
    """Return why uv cannot fetch this minor version; "" when it knows a download for this machine
    (its own list, no network).

    `downloads` is the caller's UV_PYTHON_DOWNLOADS.
    """
    if downloads.lower() == "never":
        return "UV_PYTHON_DOWNLOADS=never keeps uv from fetching one"
    if environment.get("UV_OFFLINE"):
        return "--offline keeps uv from fetching one"
    answer = capture(
        [_uv_program(), "python", "list", minor, "--only-downloads", "--output-format", "json"],
        {**environment, "UV_PYTHON_DOWNLOADS": "manual"},
    )
    if answer.code != 0:
        return (
            "uv cannot list its downloads: "
            f"{' '.join(redact(escape_control(answer.stderr)).split())}"
        )
    return "" if json.loads(answer.stdout or "[]") else "uv has no download of it for this machine"


@contextmanager
def _scratch_project(
    project: UvProject, sources: PackageSources, environment: Mapping[str, str]
) -> Iterator[tuple[Path, dict[str, str]]]:
    """A scratch folder with the project's pyproject.toml and the stand-in indexes; gives the
    address used for every index name.
    """
    with tempfile.TemporaryDirectory(prefix="provision-") as name:
        folder = Path(name)
        urls = {
            source.name: remove_credentials(index_url(source, environment))
            for source in sources.named
        }
        (folder / "pyproject.toml").write_text(_pyproject(project, urls), encoding="utf-8")
        yield folder, urls


def _exclude_newer_options(project: UvProject) -> list[str]:
    if not project.exclude_newer:
        return []
    day = project.exclude_newer
    if len(day) == 10:  # uv would take a bare day for one of this machine's time zone
        day = f"{date.fromisoformat(day) + timedelta(days=1)}T00:00:00Z"
    return [
        "--exclude-newer",
        day,
        *(
            word
            for name in project.undated
            for word in ("--exclude-newer-package", f"{name}=false")
        ),
    ]


def _preferences_lock(project: UvProject, urls: Mapping[str, str]) -> str:
    """Return a lock of uv's with names and versions only: uv keeps a version that it finds there
    while it fits, and checks all else anew.
    """
    lines = ["version = 1", f"requires-python = {json.dumps(project.requires_python)}"]
    for kept in project.preferences:
        lines += [
            "",
            "[[package]]",
            f"name = {json.dumps(kept.name)}",
            f"version = {json.dumps(kept.version)}",
            f"source = {{ registry = {json.dumps(urls.get(kept.index, 'default'))} }}",
        ]
        lines += [f"resolution-markers = {json.dumps(list(kept.markers))}"] if kept.markers else []
    return "\n".join(lines) + "\n"


def _with_python_markers(project: UvProject) -> UvProject:
    """Return the project with its Python in the environments' markers, so that uv may work with
    another one.
    """
    major, _, minor = project.python.partition(".")
    own = (
        f"python_full_version >= '{project.python}' and python_full_version < "
        f"'{major}.{int(minor) + 1}'"
    )
    environments = tuple(f"{own} and {marker}" for marker in project.environments)
    return project._replace(requires_python=">=3", environments=environments)


def _location_variables(sources: PackageSources, folder: Path) -> dict[str, str]:
    return build_index_variables(
        sources.default.url,
        _wheel_links(sources, folder),
        ((source.name, source.url) for source in sources.named),
    )


def _wheel_links(sources: PackageSources, folder: Path) -> tuple[str, ...]:
    """Return where further wheels are; those of this machine are gathered in the folder."""
    if not sources.wheels:
        return sources.find_links
    (folder / "wheels").mkdir()
    for wheel in sources.wheels:
        (folder / "wheels" / wheel.name).symlink_to(wheel.resolve())
    return (str(folder / "wheels"), *sources.find_links)


def index_url(source: IndexSource, environment: Mapping[str, str]) -> str:
    """Return the address of an index on this machine; wheels that stand in for it are laid out as
    one.
    """
    return _create_local_index(source.wheels, environment) if source.wheels else source.url


def _pyproject(project: UvProject, urls: Mapping[str, str]) -> str:
    """Render the scratch project. JSON strings and arrays of them are valid TOML."""
    lines = project_lines(project.requires_python, project.requirements)
    if project.variants:
        lines += [
            "[project.optional-dependencies]",
            *(
                f"{json.dumps(name)} = {json.dumps(list(wanted))}"
                for name, wanted in project.variants
            ),
        ]
    lines += index_lines((index.name, urls[index.name]) for index in project.indexes)
    lines += ["[tool.uv]", f"constraint-dependencies = {json.dumps(list(project.constraints))}"]
    if project.environments:
        both = json.dumps(list(project.environments))
        lines += [f"environments = {both}", f"required-environments = {both}"]
    if project.variants:
        lines.append(
            "conflicts = "
            f"[[{', '.join(f'{{ extra = {json.dumps(name)} }}' for name, _ in project.variants)}]]"
        )
    lines.append("[tool.uv.sources]")
    for package in dict.fromkeys(binding.package for binding in project.bindings):
        lines.append(
            f"{json.dumps(package)} = "
            f"[{', '.join(_source(binding) for binding in project.bindings if binding.package == package)}]"  # noqa: E501
        )
    return "\n".join(lines) + "\n"


def _source(binding: IndexBinding) -> str:
    parts = {"index": binding.index_name, "marker": binding.marker, "extra": binding.variant}
    return (
        "{ "
        + ", ".join(f"{name} = {json.dumps(value)}" for name, value in parts.items() if value)
        + " }"
    )


def _create_local_index(wheels: tuple[Path, ...], environment: Mapping[str, str]) -> str:
    """Lay out a PEP 503 index of local wheels, with their hashes, and return its address.

    It is made once and stays in the user's cache, under a name that holds what the wheels are:
    uv knows a wheel that it has unpacked by the address of its
    index, so another address would have a torch wheel hashed and unpacked again, and kept once
    more in uv's cache, at every call.
    """
    seen = [
        [str(wheel.resolve()), (found := wheel.stat()).st_ino, found.st_size, found.st_mtime_ns]
        for wheel in wheels
    ]
    folder = (
        local_index_cache(environment) / hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]
    )
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as name:
            _write_index(Path(name) / "index", wheels)
            with suppress(OSError):  # another process was first
                (Path(name) / "index").rename(folder)
    return folder.as_uri()


def _write_index(folder: Path, wheels: tuple[Path, ...]) -> None:
    by_name: dict[str, list[Path]] = {}
    for wheel in wheels:
        by_name.setdefault(canonicalize_name(wheel.name.split("-")[0]), []).append(wheel)
    for name, files in by_name.items():
        (folder / name).mkdir(parents=True)
        links = [
            f'<a href="{quote(file.name)}#sha256={hash_file(file)}">{file.name}</a>'
            for file in files
        ]
        (folder / name / "index.html").write_text(
            "<!DOCTYPE html>\n" + "\n".join(links), encoding="utf-8"
        )
        for file in files:
            (folder / name / file.name).symlink_to(file.resolve())


def _file_name(file: Mapping[str, Any]) -> str:
    return (
        str(file["name"])
        if "name" in file
        else unquote(urlsplit(file.get("url", file.get("path", ""))).path).rsplit("/", 1)[-1]
    )


def _file_url(file: Mapping[str, Any], folder: Path) -> str:
    return str(file["url"]) if "url" in file else (folder / file["path"]).resolve().as_uri()


def local_index_cache(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's cache that holds the indexes that we lay out."""
    root = (
        environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home()) / ".cache"
    )
    return Path(root) / "provision" / "stand-ins"


def hash_file(path: Path) -> str:
    """Return the sha256 of a file (hexadecimal)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _uv_program() -> str:
    import uv  # here: what only looks at a spec does without it

    return uv.find_uv_bin()


def _run_uv(
    argv: list[str],
    environment: Mapping[str, str],
    folder: Path | None,
    project: UvProject | None,
    sources: PackageSources | None,
) -> ProcessResult:
    answer = capture([_uv_program(), *argv], environment, cwd=folder)
    if answer.code != 0:
        raise _error_from_call(argv[0], answer.code, answer.stderr, project, sources)
    return answer


def _error_from_call(
    verb: str, code: int, said: str, project: UvProject | None, sources: PackageSources | None
) -> ProvisionError:
    return error_from_output(verb, redact(escape_control(said.strip())), code, project, sources)


def _run_for_installer(
    argv: list[str], environment: Mapping[str, str], folder: Path | None
) -> InstallerResult:
    from provision.agent.core.process import ProcessResult as InstallerResult

    done = capture(argv, environment, cwd=folder)
    return InstallerResult(done.code, done.stdout, done.stderr)
