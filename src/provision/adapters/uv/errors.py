"""Classifies uv's failures by their output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from provision.adapters.uv.sources import index_override_variable
from provision.agent.install.uv_messages import HASH_MISMATCH, NETWORK_DISABLED
from provision.effects.packages import PackageSources, PythonSearchResult, UvProject
from provision.errors import ExternalError, LockError, NetworkError, ProvisionError, Unsatisfiable
from provision.sanitize import redact

_UNREACHABLE = re.compile(
    r"error sending request|dns error|failed to lookup|Failed to fetch|tcp connect "
    r"error|client error|timed out|Could not connect",
    re.IGNORECASE,
)
_HOST = re.compile(r"https?://(?:[^/@\s]*@)?([^/\s`'\")]+)")
_UNAUTHORIZED = re.compile(
    r"lack of valid authentication credentials|40[137] (Unauthorized|Forbidden|Proxy "
    r"Authentication)",
    re.IGNORECASE,
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|os error (28|122)")
_DENIED = re.compile(r"Permission denied|Read-only file system|os error (13|30)")
_CERTIFICATE = re.compile(r"invalid peer certificate")
_NO_INDEX = re.compile(r"Received some unexpected (HTML|JSON)|Unsupported `Content-Type`")
_DAMAGED = re.compile(
    r"Failed to extract archive|Invalid zip file structure|ZIP structure was "
    r"truncated|Failed to read from zip file"
)
_NO_SOLUTION = "No solution found"
_NOT_FOUND = re.compile(
    r"[Bb]ecause ([\w.-]+) was not found in the package registry|there are no versions of "
    r"([\w.-]+)(?= and| ,|,)"
)
_OTHER_PYTHON = re.compile(
    r"requires Python|requested Python version|matching Python (version|ABI) tag"
)
_OTHER_PLATFORM = re.compile(r"-compatible wheels|matching platform tag")
_BUILD_FAILED = re.compile(r"Failed to (?:download and )?build `([^`]+)` cause: The build backend")
_SOURCE_ONLY = re.compile(r"Wheels are required for `([\w.-]+)`")
_SCRATCH = re.compile(r"provision-scratch(?:\[([\w-]+)\])?")
_MARKERS = re.compile(r"(?<=[\w\]])\{[^{}]*\}")
_IRRELEVANT_HINT = re.compile(r"\n[ \t]*\n[ \t]*hint: While the active Python version is [^\n]*")


class _Failure(NamedTuple):
    """A failure of uv by the text of its output; `{}` in `what` is the verb or the first group."""

    pattern: re.Pattern[str]
    error: type[ProvisionError]
    what: str
    hint: str | Callable[[str, PackageSources | None], str]


def error_from_output(
    verb: str, output: str, code: int, project: UvProject | None, sources: PackageSources | None
) -> ProvisionError:
    """Return the error for a failed call of uv with this redacted output."""
    output = _without_scratch_names(output)
    line = " ".join(output.split())  # uv breaks lines anywhere
    error = _error_by_pattern(verb, line, sources) or _package_error(
        verb, line, code, project, sources
    )
    error.why = output or "uv printed nothing"
    return error


def python_not_found_error(search: PythonSearchResult) -> ExternalError:
    """Return the error for a Python version that is not on this machine."""
    listed = ", ".join(f"{python.version} ({python.path})" for python in search.installed) or "none"
    hint = f"install Python {search.requested}, or change `python` in the spec"
    return ExternalError(
        f"there is no Python {search.requested} on this machine",
        why=f"the versions found are {listed}",
        hint=hint,
    )


def python_install_error(minor: str, output: str) -> ProvisionError:
    """Return the error for a Python that uv could not install, from its redacted output."""
    what, line = f"uv could not install Python {minor}", " ".join(output.split())
    otherwise = f"install Python {minor} yourself, or change `python` in the spec"
    kind, hint = ExternalError, otherwise
    if _NO_SPACE.search(line):
        hint = "free some space and run the command again"
    elif _UNREACHABLE.search(line) or _UNAUTHORIZED.search(line) or NETWORK_DISABLED.search(line):
        kind = NetworkError
        hint = (
            "check the network and the proxy, or set UV_PYTHON_INSTALL_MIRROR to "
            "a mirror of uv's downloads\n"
            f"or {otherwise}"
        )
    elif _DENIED.search(line) or "failed to create directory" in line:
        hint = f"set UV_PYTHON_INSTALL_DIR to a writable folder\nor {otherwise}"
    return kind(what, why=output, hint=hint)


def _error_by_pattern(
    verb: str, output: str, sources: PackageSources | None
) -> ProvisionError | None:
    failures = _FAILURES
    if _NO_SOLUTION not in output:  # a derivation names packages, and those may be called anything
        failures += _CONNECTION_FAILURES
    for pattern, kind, what, hint in failures:
        match = pattern.search(output)
        if match and not (verb == "lock" and pattern is _DAMAGED):
            subject = match[1] if pattern is _BUILD_FAILED else verb
            advice = hint if isinstance(hint, str) else hint(output, sources)
            return kind(what.format(subject), hint=advice)
    return None


def _package_error(
    verb: str, output: str, code: int, project: UvProject | None, sources: PackageSources | None
) -> ProvisionError:
    if verb == "lock" and code == 1 and project is not None:
        hints = list(_solution_hints(output, project, sources)) or [
            "relax one of the requirements that are listed above"
        ]
        what = "no set of versions satisfies the spec"
        return Unsatisfiable(what, hint="\n".join(hints) + _local_wheels_hint(sources))
    if verb == "pip" and _NO_SOLUTION in output:
        hint = (
            "it was withdrawn, or this mirror does not have it: lock again with `provision "
            f"lock --upgrade`, or use a different index{_mirror_hint(output, sources)}"
        )
        return LockError("a locked version is not available from its index", hint=hint)
    return ExternalError(f"uv {verb} failed (exit code {code})")


def _solution_hints(
    output: str, project: UvProject, sources: PackageSources | None
) -> Iterator[str]:
    """Yield a hint for each cause in a derivation, except requirements that exclude each other."""
    if project.exclude_newer and "exclude-newer" in output:
        yield (
            f"`exclude_newer: {project.exclude_newer}` hides later releases, and everything on "
            "an index without upload dates; set a later date, or remove it"
        )
        return
    names = [missing or no_version for missing, no_version in _NOT_FOUND.findall(output)]
    for name in dict.fromkeys(names):
        yield (
            f"{name} is not on {_index_label(name, project, sources)}: check the spelling; if a "
            "different index has it, declare that index (`indexes`, `index`)"
        )
    if _OTHER_PYTHON.search(output):
        yield (
            f"some versions do not support Python {project.python}: require a version that "
            "does, or change `python`"
        )
    if _OTHER_PLATFORM.search(output):
        yield (
            f"some versions do not have a wheel for Python {project.python} on every platform: "
            "require a version that does, change `python`, or declare fewer `platforms`"
        )
    for name in dict.fromkeys(_SOURCE_ONLY.findall(output)):
        yield (
            f"{name} has no wheels, only source distributions: require a version with wheels, "
            f"or use `{{name: {name}, build: true}}`"
        )
    if _DAMAGED.search(output):
        yield "a downloaded wheel is damaged: run the command again, or use a different mirror"


def _index_label(name: str, project: UvProject, sources: PackageSources | None) -> str:
    for binding in reversed(project.bindings):
        if binding.package == name:
            return f"index {binding.index_name}"
    if sources and sources.default.url:
        return f"the default index ({redact(sources.default.url)})"
    return "PyPI"


def _without_scratch_names(output: str) -> str:
    """Return uv's output without the scratch project's name, platform markers and settings."""
    if _NO_SOLUTION not in output:
        return output
    return _SCRATCH.sub(
        lambda match: f"the spec for {match[1]}" if match[1] else "your project",
        _MARKERS.sub("", _IRRELEVANT_HINT.sub("", output)),
    )


def _credentials_hint(_: str, sources: PackageSources | None) -> str:
    variables = []
    for source in sources.named if sources else ():
        if not source.url.startswith("file:"):
            prefix = f"UV_INDEX_{source.name.upper().replace('-', '_')}"
            variables.append(f"{prefix}_USERNAME and {prefix}_PASSWORD")
    hint = "check the user name and password in pip's index-url or ~/.netrc"
    return f"{hint}; for an index from the spec, set {', '.join(variables)}" if variables else hint


def _local_wheels_hint(sources: PackageSources | None) -> str:
    names = [source.name for source in sources.named if source.wheels] if sources else []
    return "".join(
        f"\nlocal wheels were used instead of the index {name}: "
        f"set {index_override_variable(name)}=URL to query an index"
        for name in names
    )


def _network_hint(output: str, sources: PackageSources | None) -> str:
    host = _HOST.search(output)
    return (
        f"check the network, the proxy and the certificates{_mirror_hint(output, sources)}\n"
        f"without a connection to {host[1] if host else 'the index'}, use --offline to install "
        "from uv's cache"
    )


def _answer_hint(output: str, sources: PackageSources | None) -> str:
    hint = "check the address, and whether a proxy responds in place of the index"
    return hint + _mirror_hint(output, sources)


def _mirror_hint(output: str, sources: PackageSources | None) -> str:
    """Return the variable that names a mirror of the index in uv's output, else of each index."""
    if sources is None:
        return ""
    remote = [
        source
        for source in sources.named
        if source.url and not source.url.startswith("file:") and not source.wheels
    ]
    for source in remote:
        if redact(source.url) in output:
            variable = index_override_variable(source.name)
            return f"; to use a mirror of index {source.name}, set {variable}"
    variables = "".join(
        f", {index_override_variable(source.name)} (index {source.name})" for source in remote
    )
    return (
        "; to use a mirror, set pip's index-url\n"
        f"or an environment variable: {index_override_variable(sources.default.name)} (default "
        f"index){variables}"
    )


_FAILURES: tuple[_Failure, ...] = (
    _Failure(  # first, since a build may write anything
        _BUILD_FAILED,
        ExternalError,
        "{} could not be built from source",
        "the output above shows what the build needs: add missing Python packages to "
        "`packages`, and install a missing compiler on the machine",
    ),
    _Failure(
        _NO_SPACE,
        ExternalError,
        "the disk is full",
        "free some space (the environment and uv's cache need a few GB) and run the command again",
    ),
    _Failure(
        _DENIED,
        ExternalError,
        "uv {} is not allowed to write to a path that it needs",
        "check the owner and mode of the path in uv's message",
    ),
    _Failure(
        HASH_MISMATCH,
        LockError,
        "a file on the index differs from the locked file",
        "a mirror or a proxy may have changed it: use a different one\n"
        "if the change is intended, lock again with `provision lock --upgrade`",
    ),
    _Failure(
        NETWORK_DISABLED,
        NetworkError,
        "a required file is not in uv's cache, and the network is disabled",
        "run the command once with network access, without --offline and UV_OFFLINE",
    ),
    _Failure(
        _UNAUTHORIZED,
        NetworkError,
        "a package index requires credentials, or rejected them",
        _credentials_hint,
    ),
    _Failure(
        _DAMAGED,
        NetworkError,
        "a downloaded wheel is damaged",
        "run the command again; if it fails again, a mirror or a proxy truncates the file: use "
        "a different one",
    ),
)
_CONNECTION_FAILURES = (
    _Failure(
        _CERTIFICATE,
        NetworkError,
        "the certificate of a package index is not trusted",
        "if a proxy or a mirror has its own certificate, set SSL_CERT_FILE (or `cert` in pip's "
        "configuration) to the file of its certificate authority\n"
        "or set UV_SYSTEM_CERTS=1 to use the certificates of the operating system",
    ),
    _Failure(_UNREACHABLE, NetworkError, "a package index could not be reached", _network_hint),
    _Failure(
        _NO_INDEX,
        NetworkError,
        "a package index returned an unreadable response",
        _answer_hint,
    ),
)
