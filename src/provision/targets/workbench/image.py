"""Image of an instance: an exact name, or the newest image that Workbench offers of a family."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from provision.facts import Facts
from provision.facts.schema_platforms import split_image_name

_PROJECT = "cloud-notebooks-managed"
"""The project of Workbench's own images (Workbench documentation, Image versioning)."""
_DATED = re.compile(r"-(\d{8})-(\d{4})-rc(\d+)$")


class ImageChoice(NamedTuple):
    """An image by project and exact name, with the family it was resolved from; or a problem."""

    project: str
    name: str
    family: str = ""
    problem: str = ""


def find_newest_family(facts: Facts) -> str:
    """Return the family of Workbench's images that came last."""
    return max(
        (
            image
            for image in facts.images.values()
            if image.kind == "workbench" and not image.legacy
        ),
        key=lambda image: image.released,
    ).family


def is_image_unpinned(image: str | None) -> bool:
    """Return whether the spec names no image, or only a family."""
    return image is None or not split_image_name(image)[1]


def choose_image(
    declared: str | None,
    facts: Facts,
    config: Mapping[str, Any] | None,
    recorded: Mapping[str, Any] | None,
) -> ImageChoice:
    """Return the image of an instance.

    `config` is the answer of getConfig in the first zone; None if it was not requested or failed.
    What was resolved for an instance that exists (`recorded`: project, name, family) stays as long
    as the spec names the same family: images come out weekly, which does not justify a new machine.
    """
    family = split_image_name(declared)[0] if declared else find_newest_family(facts)
    row = facts.images.get(family)
    project = row.project if row else _PROJECT
    if declared is not None and not is_image_unpinned(declared):
        return ImageChoice(project, declared)
    if recorded is not None and recorded.get("family") == family:
        return ImageChoice(str(recorded["project"]), str(recorded["name"]), family)
    if config is None:
        return ImageChoice(
            project, "", family, f"the images of the family {family} could not be asked for"
        )
    offered = [
        str(image.get("imageName", ""))
        for image in config.get("availableImages", ())
        if image.get("imageFamily") == family
    ]
    if not offered:
        return ImageChoice(
            project, "", family, f"Workbench offers no image of the family {family} there"
        )
    return ImageChoice(project, max(offered, key=_age), family)


def _age(name: str) -> tuple[str, str, int, str]:
    match = _DATED.search(name)
    return (match[1], match[2], int(match[3]), name) if match else ("", "", 0, name)
