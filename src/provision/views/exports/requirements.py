"""A locked environment as a requirements file with hashes, for pip and uv."""

from __future__ import annotations

from collections.abc import Iterator

from provision.lock.target_view import TargetView, ViewedPackage, is_wheel
from provision.views.exports import MADE_BY


def render_requirements(portion: TargetView) -> str:
    """Return the file.

    pip does not bind packages to an index, so only the hashes keep another index from replacing
    a package.
    """
    built = ",".join(
        held.package.name
        for held in portion.packages
        if not all(is_wheel(file) for file in held.package.files)
    )
    options = (
        f"--require-hashes --no-deps --only-binary :all:{f' --no-binary {built}' if built else ''}"
    )
    keys = ", ".join(environment.key for environment in portion.environments)
    lines = [
        f"# {MADE_BY} --format requirements`: change the spec, lock, and export again.",
        f"# For Python {portion.python} on {keys}; lock {portion.digest}",
        f"# Install with: pip install {options} -r FILE",
        *(
            f"{'--extra-index-url' if number else '--index-url'} {url}"
            for number, url in enumerate(portion.indexes.values())
            if url
        ),
        "",
    ]
    return (
        "\n".join([*lines, *(" \\\n    ".join(_requirement(held)) for held in portion.packages)])
        + "\n"
    )


def _requirement(held: ViewedPackage) -> Iterator[str]:
    marker = f" ; {held.marker}" if held.marker else ""
    yield f"{held.package.name}=={held.package.version}{marker}"
    for sha256 in sorted({file.sha256 for file in held.package.files}):
        yield f"--hash=sha256:{sha256}"
