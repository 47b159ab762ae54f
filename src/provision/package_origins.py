"""Packages from a repository, a folder or a wheel file, as a spec names them.

The keys are those of uv's `tool.uv.sources`: git, rev, subdirectory, path, editable.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urldefrag, urlsplit

from pydantic_core import PydanticCustomError

ORIGIN_KEYS = ("git", "rev", "subdirectory", "path", "editable")
_NAMED_HINT = "write {name: NAME, %s}"
_URL_HINT = (
    "download the file into the project and name its path, as in ./dist/x-1.0-py3-none-any.whl, or "
    "name the repository, as in NAME @ git+https://example.com/x.git@v1.0"
)
_ELSEWHERE = re.compile(
    r"^\s*(?:[a-z]+\+)?(?:https?|ssh|git|file)://|^\s*(?:-e\b|\.{0,2}/|\.{1,2}(?:\[|\s*$))|\.whl\s*$"
)
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")


def _error(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError("requirement", message, {"hint": hint})


def parse_unnamed(text: str) -> dict[str, Any] | None:
    """Return the fields of a text such as ./dist/x-1.0-py3-none-any.whl, None for another text.

    Raises:
        PydanticCustomError: a folder or repository without the name of its package.
    """
    if not _ELSEWHERE.search(text):
        return None
    address = re.sub(r"^-e\s*", "", text.strip())
    is_editable = address != text.strip()
    if address.startswith("git+"):
        raise _error("does not name its package", "write NAME @ git+https://...")
    if "://" in address:
        raise _error("is a URL; a package comes from an index, a path or a repository", _URL_HINT)
    if address.endswith(".whl") and not is_editable:
        name = PurePosixPath(address).name.partition("-")[0]
        return {"name": name, "path": address}
    folder, _, extras = address.rstrip("]").partition("[")
    part = f"path: {folder or './FOLDER'}"
    part += f", extras: [{extras}]" if extras else ""
    part += ", editable: true" if is_editable else ""
    raise _error("is a folder and does not name its package", _NAMED_HINT % part)


def parse_url(url: str) -> dict[str, Any]:
    """Return the fields that the address of a requirement (`NAME @ ADDRESS`) stands for.

    Raises:
        PydanticCustomError: it is neither a path nor an address of a git repository.
    """
    if "://" not in url and not url.startswith("git+"):
        return {"path": url}
    if url.startswith("file:"):
        raise _error("is an address of this machine", "write a path relative to the spec")
    if not url.startswith("git+"):
        raise _error("is a URL; a package comes from an index, a path or a repository", _URL_HINT)
    address, fragment = urldefrag(url.removeprefix("git+"))
    head, separator, path = address.partition("://")
    host, slash, path = path.partition("/")
    path, at, revision = path.partition("@")
    fields = {"git": f"{head}{separator}{host}{slash}{path}"}
    if at:
        fields["rev"] = revision
    if fragment:
        fields["subdirectory"] = "".join(parse_qs(fragment).get("subdirectory", ()))
        if not fields["subdirectory"]:
            raise _error("has a fragment without effect", "write #subdirectory=FOLDER or nothing")
    return fields


def refuse_other_keys(fields: Mapping[Any, Any]) -> None:
    """Raise PydanticCustomError for keys that other tools have for a package from elsewhere."""
    if "url" in fields:
        raise _error(
            "names a URL (`url`); a package comes from an index, a path or a repository", _URL_HINT
        )
    refuse_revision_keys(fields)


def refuse_revision_keys(fields: Mapping[Any, Any]) -> None:
    """Raise PydanticCustomError for the keys that other tools have for a revision."""
    for key in ("branch", "tag"):
        if key in fields:
            raise _error(f"`{key}` is not a key here", f"write rev instead of {key}")


def check_path(path: str) -> str:
    """Return a path in its shortest form; raise PydanticCustomError if it is not relative."""
    if "://" in path or path.startswith(("/", "~")) or "\\" in path or not path.strip():
        raise PydanticCustomError(
            "package_path",
            "write a path relative to the spec, with forward slashes, as in ./libs/ours",
        )
    return PurePosixPath(path).as_posix()


def check_git_url(url: str) -> str:
    """Return the address of a repository; raise PydanticCustomError for one that is refused."""
    if re.fullmatch(r"[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:(?!//)\S+", url):
        raise PydanticCustomError(
            "git_url", "write it as a URL: ssh:// before it, and a slash in place of the colon"
        )
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname)
    except ValueError:
        has_host = False
    if not has_host or parts.scheme not in ("https", "ssh") or re.search(r"\s", url):
        raise PydanticCustomError(
            "git_url", "write an address such as https://github.com/huggingface/trl"
        )
    if parts.password is not None or (parts.username is not None and parts.scheme == "https"):
        raise PydanticCustomError(
            "url_credentials",
            "a user name or password in the URL would end up in the lock; remove it: git uses "
            "your own credential helper or SSH key",
        )
    if parts.query or parts.fragment:
        raise PydanticCustomError(
            "url_query",
            "a query may contain a token, which would end up in the lock; remove it from the URL",
        )
    return url.rstrip("/")


def check_revision(revision: str) -> str:
    """Return a branch, tag or commit; raise PydanticCustomError for another text."""
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise PydanticCustomError("revision", "not the name of a branch, a tag or a commit")
    return revision


def check_subdirectory(path: str) -> str:
    """Return the folder in a repository; raise PydanticCustomError if it leads out of it."""
    if path.startswith("/") or ".." in path.split("/") or "\\" in path:
        raise PydanticCustomError("subdirectory", "not a folder inside of the repository")
    return PurePosixPath(path).as_posix()


def format_git_source(git: str | None, revision: str | None) -> str:
    """Return a repository and its revision as text, "" without a repository."""
    if git is None:
        return ""
    return f"git+{git}@{revision}" if revision else f"git+{git}"


def find_git_contradiction(fields: Mapping[str, Any]) -> str:
    """Return why the fields of a repository do not fit together, "" if they do."""
    git, path = fields["git"], fields["path"]
    if git and path:
        return "git and path name two sources; remove one of them"
    for key in ("rev", "subdirectory"):
        if fields[key] and not git:
            return f"{key} has no effect without git"
    return ""


def find_contradiction(fields: Mapping[str, Any]) -> str:
    """Return why the fields of a package do not fit together, "" if they do."""
    git, path = fields["git"], fields["path"]
    if problem := find_git_contradiction(fields):
        return problem
    if fields["editable"] and (not path or path.endswith(".whl")):
        return "editable needs path with a folder"
    if (git or path) and fields["index"]:
        return f"{'git' if git else 'path'} and index name two sources; remove one of them"
    if (git or path) and fields["source"] == "conda":
        return "source: conda has no effect on a package with git or path; remove it"
    return ""
