"""A locked environment as a requirements file with hashes, for pip and uv."""

from __future__ import annotations

from provision.lock.model import LockedPackage
from provision.lock.target_view import TargetView, is_wheel
from provision.views.exports import MADE_BY


def render_requirements(view: TargetView) -> str:
    """Return the file.

    pip does not bind packages to an index, so only the hashes keep another index from replacing
    a package.
    """
    options = "--require-hashes --no-deps --only-binary :all:"
    if built := ",".join(packages_without_wheels(view)):
        options += f" --no-binary {built}"
    keys = ", ".join(environment.key for environment in view.environments)
    lines = [
        f"# {MADE_BY} --format requirements`: change the spec, lock, and export again.",
        f"# For Python {view.python} on {keys}; lock {view.digest}",
        f"# Install with: pip install {options} -r FILE",
        *index_options(view),
        "",
    ]
    for viewed in view.packages:
        marker = f" ; {viewed.marker}" if viewed.marker else ""
        pin = f"{viewed.package.name}=={viewed.package.version}"
        if viewed.package.origin is not None:
            pin = f"./{viewed.package.origin.path.removeprefix('./')}"
        pin += marker
        lines.append(" \\\n    ".join((pin, *hash_options(viewed.package))))
    return "\n".join(lines) + "\n"


def index_options(view: TargetView) -> list[str]:
    """Return pip's options for the indexes, the first one as the main index."""
    return [
        f"{'--extra-index-url' if number else '--index-url'} {url}"
        for number, url in enumerate(view.indexes.values())
        if url
    ]


def packages_without_wheels(view: TargetView) -> list[str]:
    """Return the names of the packages that have to be built."""
    packages = [viewed.package for viewed in view.packages]
    return [package.name for package in packages if not all(map(is_wheel, package.files))]


def hash_options(package: LockedPackage) -> list[str]:
    """Return pip's options for the hashes of a package."""
    return [f"--hash=sha256:{sha256}" for sha256 in sorted_hashes(package)]


def sorted_hashes(package: LockedPackage) -> list[str]:
    """Return the SHA-256 of every file of a package, each once."""
    return sorted({file.sha256 for file in package.files})
