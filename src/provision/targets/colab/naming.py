"""What the files of a Colab target are called, and which target a spec's own words call what."""

from __future__ import annotations

import shlex

from provision.places import ColabTarget
from provision.targets.target import Place

CELL, NOTEBOOK, PAYLOAD = ".colab.py", ".ipynb", ".payload"


def colab(place: Place) -> ColabTarget:
    """Return the target of a place; the registry asks by kind."""
    target = place.spec.targets[place.target]
    assert isinstance(target, ColabTarget)  # noqa: S101 - the registry asks by kind
    return target


def name_of(place: Place) -> str:
    """Return what the files of a target begin with: the spec's stem, and the target's name where the spec has several Colab targets."""
    asked = place.lock.asked.get("targets", {})
    several = sum(str(words).split(" ", 1)[0] == "colab" for words in asked.values()) > 1
    return f"{place.stem}.{place.target}" if several else place.stem


def render_command(place: Place, spec_file: str, url: str = "") -> str:
    """Return the command that makes the files again, as it is typed in the folder of the spec."""
    apart = f" --payload-url {shlex.quote(url)}" if url else ""
    return f"provision render {shlex.quote(spec_file)} --target {shlex.quote(place.target)}{apart}"
