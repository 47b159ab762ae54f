"""The calls of uv: what it is given, with which environment, and what its answers mean."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from provision.effects import (
    Binding,
    CreateVenv,
    IndexSource,
    InstallPackages,
    InstallPython,
    Interpreter,
    Pin,
    Project,
    Release,
    Resolution,
    SourceFile,
    Sources,
)
from provision.errors import LockError, NetworkError, ProvisionError, Unsatisfiable, WorldError
from provision.safe import redact, safe
from provision.world.mirrors import override_variable
from provision.world.pip_configuration import PipConfiguration
from provision.world.process import Finished, capture

_KEPT = re.compile(
    r"UV_(CACHE_DIR|LINK_MODE|OFFLINE|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|HTTP_RETRIES|HTTP_CONNECT_TIMEOUT|CONCURRENT_\w+|KEYRING_PROVIDER"
    r"|INDEX_\w+_(USERNAME|PASSWORD)|PYTHON_INSTALL_DIR|PYTHON_INSTALL_MIRROR|MANAGED_PYTHON|NO_MANAGED_PYTHON)"
)
_FOREIGN = re.compile(r"(UV_|PIP_)|(VIRTUAL_ENV|CONDA_PREFIX|PYTHONPATH|PYTHONHOME|PYTHONDONTWRITEBYTECODE|__PYVENV_LAUNCHER__)$")
_UNREACHABLE = re.compile(
    r"error sending request|dns error|failed to lookup|Failed to fetch|tcp connect error|client error|timed out|Could not connect|invalid peer certificate",
    re.IGNORECASE,
)
_UNAUTHORIZED = re.compile(r"lack of valid authentication credentials|40[137] (Unauthorized|Forbidden|Proxy Authentication)", re.IGNORECASE)
_OFFLINE = re.compile(r"network (was|is) disabled|--offline", re.IGNORECASE)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|os error (28|122)")
_DENIED = re.compile(r"Permission denied|Read-only file system|os error (13|30)")
_NOT_BUILT = re.compile(r"Wheels are required for `([^`\s]+)` because building from source is disabled")
_UNBUILT = re.compile(r"Failed to (?:download and )?build `([^`]+)`\s+cause: The build backend")
_SHOWN_LINES = 40
_EXPORT = ("export", "--frozen", "--no-emit-project", "--format", "pylock.toml", "--no-header", "--quiet", "--output-file", "pylock.toml")
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/?#:]*)(:(?P<password>[^/?#]*))?@(?P<rest>.*)", re.DOTALL)
_HASH = re.compile(r"Hash mismatch|Hash-checking is (enabled|required)")


def scrubbed(environment: Mapping[str, str], pip: PipConfiguration) -> dict[str, str]:
    """Return an environment for uv in which nothing foreign decides the result: no configuration, no downloads of Python, pip's proxy and certificates."""
    kept = {key: value for key, value in environment.items() if not _FOREIGN.match(key) or (value and _KEPT.fullmatch(key))}
    ours = {
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_PROGRESS": "1",
        "NO_COLOR": "1",
        "UV_HTTP_RETRIES": "2",
        "UV_HTTP_CONNECT_TIMEOUT": "10",
    }
    if pip.proxy:
        ours |= {name: pip.proxy for name in ("HTTP_PROXY", "HTTPS_PROXY") if name not in kept and name.lower() not in kept}
    if pip.cert and "SSL_CERT_FILE" not in kept:
        ours["SSL_CERT_FILE"] = pip.cert
    return {**ours, **kept, **{key: ours[key] for key in ("UV_NO_CONFIG", "UV_PYTHON_DOWNLOADS", "UV_NO_PROGRESS", "NO_COLOR")}}


def resolve(project: Project, sources: Sources, interpreter: Interpreter, environment: Mapping[str, str]) -> Resolution:
    """Resolve a project to one set of versions over all its environments: `uv lock`, then `uv export` (two calls, the second needs no network).

    An interpreter of another version than the project's will do: the project's own is then asked for by markers, which uv narrows the resolution to.
    Raises LockError with uv's derivation, NetworkError when an index is out of reach, WorldError for the rest.
    """
    with _folder(project if interpreter.minor == project.python else _by_markers(project), sources, environment) as (folder, urls):
        passed = {**environment, **_locations(sources, folder)}
        if project.preferences:
            (folder / "uv.lock").write_text(_kept(project, urls), encoding="utf-8")
        _called(["lock", "--python", str(interpreter.path), "--quiet", "--no-build", *_dates(project)], passed, folder, project, sources)
        pylocks = {}
        for variant in [name for name, _ in project.variants] or [""]:
            _called([*_EXPORT, *(["--extra", variant] if variant else [])], passed, folder, project, sources)
            pylocks[variant] = (folder / "pylock.toml").read_text(encoding="utf-8")
        return Resolution((folder / "uv.lock").read_text(encoding="utf-8"), pylocks, sources)


def newest(project: Project, sources: Sources, interpreter: Interpreter, environment: Mapping[str, str]) -> Release:
    """Return the newest release that the only requirement of a project admits, wheels or source.

    uv is told what the package needs (nothing), so that it neither fetches nor builds it. Raises as `resolve` does.
    """
    (name,) = (canonicalize_name(Requirement(line).name) for line in project.requirements)
    with _folder(project if interpreter.minor == project.python else _by_markers(project), sources, environment) as (folder, urls):
        passed = {**environment, **_locations(sources, folder)}
        (folder / "given.toml").write_text(f"[[dependency-metadata]]\nname = {json.dumps(name)}\nrequires-dist = []\n", encoding="utf-8")
        if project.preferences:
            (folder / "uv.lock").write_text(_kept(project, urls), encoding="utf-8")
        _called(["lock", "--config-file", "given.toml", "--python", str(interpreter.path), "--quiet", *_dates(project)], passed, folder, project, sources)
        _called([*_EXPORT, "--config-file", "given.toml"], passed, folder, project, sources)
        row = next(row for row in tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8"))["packages"] if row["name"] == name)
        source = row.get("sdist")
        found = SourceFile(_file_name(source), _address(source, folder), source.get("hashes", {}).get("sha256", "")) if source else None
        return Release(name, row["version"], tuple(_file_name(wheel) for wheel in row.get("wheels", ())), found)


def install(effect: InstallPackages, sources: Sources, environment: Mapping[str, str]) -> None:
    """Make the environment hold exactly the pins: `uv pip sync` with a hash for every wheel, then what has to be built with these."""
    _install(effect, tuple(pin for pin in effect.pins if not pin.built), ["sync", "--no-build"], sources, environment)
    build(effect, sources, environment)


def build(effect: InstallPackages, sources: Sources, environment: Mapping[str, str]) -> None:
    """Build and install the pins that are source, with a hash for each, by what the environment holds: torch and build tools are the locked ones.

    uv keeps what it has built by its source alone. So it is told for which wheels it builds: with another torch it builds again.
    """
    pins = tuple(pin for pin in effect.pins if pin.built)
    if not pins:
        return
    held = hashlib.sha256(json.dumps([effect.minor, *(sorted(pin.hashes) for pin in effect.pins)]).encode()).hexdigest()
    keys = "".join(f"{json.dumps(pin.name)} = {{ PROVISION_BUILT_FOR = {json.dumps(held)} }}\n" for pin in pins)
    only = [word for pin in pins for word in ("--no-binary", pin.name)]
    argv = ["install", "--no-deps", "--no-build-isolation", *only, "--config-file", "given.toml"]
    _install(effect, pins, argv, sources, environment, f"[extra-build-variables]\n{keys}")


def _install(effect: InstallPackages, pins: tuple[Pin, ...], argv: list[str], sources: Sources, environment: Mapping[str, str], given: str = "") -> None:
    bindings = tuple(Binding(pin.name, pin.index) for pin in pins if pin.index)
    project = Project(effect.minor, f"=={effect.minor}.*", tuple(f"{pin.name}=={pin.version}" for pin in pins), effect.indexes, bindings)
    hashes = "\n".join(f"{pin.name}=={pin.version} " + " ".join(f"--hash=sha256:{value}" for value in pin.hashes) for pin in pins)
    files = ["pyproject.toml"] if argv[0] == "sync" else ["--requirements", "pyproject.toml"]
    with _folder(project, sources, environment) as (folder, _):
        (folder / "hashes.txt").write_text(hashes, encoding="utf-8")
        (folder / "given.toml").write_text(given, encoding="utf-8")
        passed = {**environment, **_locations(sources, folder)}
        own = ["--python", str(effect.environment / "bin/python"), "--require-hashes", "--quiet"]
        _called(["pip", *argv, *own, *files, "--constraints", "hashes.txt"], passed, folder, project, sources)


def create_venv(effect: CreateVenv, interpreter: Path, environment: Mapping[str, str]) -> None:
    """Make an empty environment; what was at the path is removed by uv."""
    _called(["venv", "--quiet", "--clear", "--python", str(interpreter), str(effect.path)], environment, None, None, None)


def install_python(effect: InstallPython, environment: Mapping[str, str]) -> None:
    """Fetch a managed CPython: the one call that may download an interpreter."""
    _called(["python", "install", "--quiet", effect.minor], {**environment, "UV_PYTHON_DOWNLOADS": "manual"}, None, None, None)


def find_python(minor: str, environment: Mapping[str, str]) -> Path | None:
    """Return the interpreter of this minor version that uv finds outside virtual environments, or None."""
    answer = capture([_program(), "python", "find", "--system", minor], environment)
    return Path(answer.stdout.strip()) if answer.code == 0 else None


def list_pythons(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return (version, path) of every CPython that uv finds on this machine."""
    answer = capture([_program(), "python", "list", "--only-installed", "--output-format", "json"], environment)
    rows = json.loads(answer.stdout or "[]")
    return [(row["version"], Path(row["path"])) for row in rows if row["implementation"] == "cpython" and row["path"]]


def can_fetch_python(minor: str, environment: Mapping[str, str]) -> bool:
    """Tell whether uv knows a download of this minor version for this machine (its own list, no network)."""
    answer = capture([_program(), "python", "list", minor, "--only-downloads", "--output-format", "json"], {**environment, "UV_PYTHON_DOWNLOADS": "manual"})
    return bool(json.loads(answer.stdout or "[]")) if answer.code == 0 else False


@contextmanager
def _folder(project: Project, sources: Sources, environment: Mapping[str, str]) -> Iterator[tuple[Path, dict[str, str]]]:
    """A scratch folder with the project's pyproject.toml and the stand-in indexes; gives the address used for every index name."""
    with tempfile.TemporaryDirectory(prefix="provision-") as name:
        folder = Path(name)
        urls = {source.name: _stand_in(source.wheels, environment) if source.wheels else _bare(source.url) for source in sources.named}
        if sources.wheels:
            (folder / "wheels").mkdir()
            for wheel in sources.wheels:
                (folder / "wheels" / wheel.name).symlink_to(wheel.resolve())
        (folder / "pyproject.toml").write_text(_pyproject(project, urls), encoding="utf-8")
        yield folder, urls


def _dates(project: Project) -> list[str]:
    if not project.exclude_newer:
        return []
    return ["--exclude-newer", project.exclude_newer, *(word for name in project.undated for word in ("--exclude-newer-package", f"{name}=false"))]


def _kept(project: Project, urls: Mapping[str, str]) -> str:
    """Return a lock of uv's with names and versions only: uv keeps a version that it finds there while it fits, and checks all else anew."""
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


def _by_markers(project: Project) -> Project:
    """Return the project with its Python in the environments' markers, so that uv may work with another one."""
    major, _, minor = project.python.partition(".")
    own = f"python_full_version >= '{project.python}' and python_full_version < '{major}.{int(minor) + 1}'"
    environments = tuple(f"{own} and {marker}" for marker in project.environments)
    return project._replace(requires_python=">=3", environments=environments)


def _locations(sources: Sources, folder: Path) -> dict[str, str]:
    # All that may carry a password goes through the environment: command lines are public, and a file would outlive a kill.
    links = [*([str(folder / "wheels")] if sources.wheels else []), *sources.links]
    passed = {"UV_DEFAULT_INDEX": sources.default.url, "UV_FIND_LINKS": ",".join(links)}
    return {**{key: value for key, value in passed.items() if value}, **{key: value for source in sources.named for key, value in _credentials(source)}}


def _bare(url: str) -> str:
    found = _USERINFO.fullmatch(url)
    return found["scheme"] + found["rest"] if found else url


def _credentials(source: IndexSource) -> Iterator[tuple[str, str]]:
    """Give what opens a named index as uv's variables for it, whose names hold letters, digits and underscores only."""
    if found := _USERINFO.fullmatch(source.url):
        name = re.sub(r"[^A-Z0-9]", "_", source.name.upper())
        for part, value in (("USERNAME", found["user"]), ("PASSWORD", found["password"])):
            if value:
                yield f"UV_INDEX_{name}_{part}", unquote(value)


def _pyproject(project: Project, urls: Mapping[str, str]) -> str:
    """Render the scratch project. JSON strings and arrays of them are valid TOML."""
    lines = ["[project]", 'name = "provision-scratch"', 'version = "0"', f"requires-python = {json.dumps(project.requires_python)}"]
    lines.append(f"dependencies = {json.dumps(list(project.requirements))}")
    if project.variants:
        lines += ["[project.optional-dependencies]", *(f"{json.dumps(name)} = {json.dumps(list(wanted))}" for name, wanted in project.variants)]
    for index in project.indexes:
        lines += ["[[tool.uv.index]]", f"name = {json.dumps(index.name)}", f"url = {json.dumps(urls[index.name])}", "explicit = true"]
    lines += ["[tool.uv]", f"constraint-dependencies = {json.dumps(list(project.constraints))}"]
    if project.environments:
        both = json.dumps(list(project.environments))
        lines += [f"environments = {both}", f"required-environments = {both}"]
    if project.variants:
        lines.append(f"conflicts = [[{', '.join(f'{{ extra = {json.dumps(name)} }}' for name, _ in project.variants)}]]")
    lines.append("[tool.uv.sources]")
    for package in dict.fromkeys(binding.package for binding in project.bindings):
        lines.append(f"{json.dumps(package)} = [{', '.join(_source(binding) for binding in project.bindings if binding.package == package)}]")
    return "\n".join(lines) + "\n"


def _source(binding: Binding) -> str:
    parts = {"index": binding.source, "marker": binding.marker, "extra": binding.variant}
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in parts.items() if value) + " }"


def _stand_in(wheels: tuple[Path, ...], environment: Mapping[str, str]) -> str:
    """Lay out a PEP 503 index of local wheels, with their hashes, and return its address.

    It is made once and stays in the user's cache, under a name that holds what the wheels are: uv knows a wheel that it has unpacked by the address of its
    index, so another address would have a torch wheel hashed and unpacked again, and kept once more in uv's cache, at every call.
    """
    seen = [[str(wheel.resolve()), (found := wheel.stat()).st_ino, found.st_size, found.st_mtime_ns] for wheel in wheels]
    folder = stand_ins(environment) / hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder.parent) as name:
            _lay_out(Path(name) / "index", wheels)
            with suppress(OSError):  # another process was first
                (Path(name) / "index").rename(folder)
    return folder.as_uri()


def _lay_out(folder: Path, wheels: tuple[Path, ...]) -> None:
    by_name: dict[str, list[Path]] = {}
    for wheel in wheels:
        by_name.setdefault(canonicalize_name(wheel.name.split("-")[0]), []).append(wheel)
    for name, files in by_name.items():
        (folder / name).mkdir(parents=True)
        links = [f'<a href="{quote(file.name)}#sha256={_sha256(file)}">{file.name}</a>' for file in files]
        (folder / name / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links), encoding="utf-8")
        for file in files:
            (folder / name / file.name).symlink_to(file.resolve())


def _file_name(file: Mapping[str, Any]) -> str:
    return str(file["name"]) if "name" in file else unquote(urlsplit(file.get("url", file.get("path", ""))).path).rsplit("/", 1)[-1]


def _address(file: Mapping[str, Any], folder: Path) -> str:
    return str(file["url"]) if "url" in file else (folder / file["path"]).resolve().as_uri()


def stand_ins(environment: Mapping[str, str]) -> Path:
    """Return the folder of the user's cache that holds the indexes that we lay out."""
    root = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home()) / ".cache"
    return Path(root) / "provision" / "stand-ins"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _program() -> str:
    import uv  # here: what only looks at a spec does without it

    return uv.find_uv_bin()


def _called(argv: list[str], environment: Mapping[str, str], folder: Path | None, project: Project | None, sources: Sources | None) -> Finished:
    answer = capture([_program(), *argv], environment, cwd=folder)
    if answer.code != 0:
        error = _explained(argv[0], redact(safe(answer.stderr.strip())), answer.code, project, sources)
        error.why = _shortened(error.why)
        raise error
    return answer


def _shortened(said: str) -> str:
    """Return the end of a long text, where uv concludes, with the name of the file that the whole of it is written to."""
    lines = said.splitlines()
    if len(lines) <= _SHOWN_LINES:
        return said
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="provision-uv-", suffix=".txt", delete=False) as file:
        file.write(said + "\n")
    return "\n".join([f"... {len(lines) - _SHOWN_LINES} lines come before these; all of it: {file.name}", *lines[-_SHOWN_LINES:]])


def _explained(verb: str, said: str, code: int, project: Project | None, sources: Sources | None) -> ProvisionError:
    if built := _UNBUILT.search(said):  # first, since what a build writes may read like anything
        hint = "what the build lacks is named above: a Python package goes to `packages`, a compiler is for the machine to have"
        return WorldError(f"{built[1]} could not be built from source", why=said, hint=hint)
    if _NO_SPACE.search(said):
        return WorldError("the disk is full", why=said, hint="free some space (the environment and uv's cache need a few GB) and run the command again")
    if _DENIED.search(said):
        return WorldError(f"uv {verb} may not write where it has to", why=said, hint="check the owner and mode of the path it names")
    if _HASH.search(said):
        return LockError(
            "a file on the index is not the one that was locked", why=said, hint="if the change is meant, lock again with `provision lock --upgrade`"
        )
    if _OFFLINE.search(said):
        return NetworkError("something is needed that is not in uv's cache, and the network is switched off", why=said, hint="run once with network")
    if _UNAUTHORIZED.search(said):
        return NetworkError("a package index refused the credentials, or asks for some", why=said, hint=_way_in(sources))
    if _UNREACHABLE.search(said) and "No solution found" not in said:  # a derivation names packages, and those may be called anything
        return NetworkError("a package index could not be reached", why=said, hint=_way_to_index(sources))
    if verb == "lock" and code == 1 and project is not None:
        hint = "loosen one of the requirements named above" + _as_source(said) + _stood_in(sources)
        return Unsatisfiable("no set of versions satisfies the spec", why=said, hint=hint)
    return WorldError(f"uv {verb} failed (exit code {code})", why=said)


def _as_source(said: str) -> str:
    names = list(dict.fromkeys(name.split("==")[0] for name in _NOT_BUILT.findall(said)))
    return "".join(f"\n{name} has no wheel that fits: `{{name: {name}, build: true}}` under `packages` lets it be built from source" for name in names)


def _way_in(sources: Sources | None) -> str:
    names = [source.name.upper().replace("-", "_") for source in sources.named if not source.url.startswith("file:")] if sources else []
    named = f"; for an index of the spec set {', '.join(f'UV_INDEX_{name}_USERNAME and UV_INDEX_{name}_PASSWORD' for name in names)}" if names else ""
    return f"check user name and password in pip's index-url or ~/.netrc{named}"


def _stood_in(sources: Sources | None) -> str:
    names = [source.name for source in sources.named if source.wheels] if sources else []
    return "".join(f"\nlocal wheels stood in for index {name}: {override_variable(name)}=ADDRESS asks an index instead" for name in names)


def _way_to_index(sources: Sources | None) -> str:
    names = [source.name for source in sources.named if not source.url.startswith("file:")] if sources else []
    variables = ", ".join(override_variable(name) for name in names)
    mirrors = f"; a mirror is named by pip's index-url{f' (default index) or the variable {variables}' if variables else ''}"
    return f"check network, proxy and certificates{mirrors}"
