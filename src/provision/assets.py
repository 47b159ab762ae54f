"""Finds templates and built-in specs: in the wheel, or in the repository of an editable install."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_BUILTIN = "specs/builtin"


def find_asset(name: str) -> Path:
    """Return the path of an asset such as "templates/report.html.j2".

    Raises:
        FileNotFoundError: this installation lacks it.
    """
    for root in (_PACKAGE / "_assets", _PACKAGE.parent.parent):
        if (root / name).is_file():
            return root / name
    raise FileNotFoundError(
        f"this installation of provision is missing {name}; reinstall provision"
    )


def list_builtin_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that `extends: builtin:NAME` may name, sorted."""
    folders = [root / _BUILTIN for root in (_PACKAGE / "_assets", _PACKAGE.parent.parent)]
    return tuple(
        sorted(path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.yaml"))
    )


def find_builtin_profile(name: str) -> Path:
    """Return the path of a built-in profile; raises FileNotFoundError if it does not exist."""
    return find_asset(f"{_BUILTIN}/{name}.yaml")
