"""Images of jobs, compared with what their machines need before a job is created."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.adapters.google.image_registry import PLATFORM
from provision.effects.google import ImageDescription
from provision.kinds.base import Refusal
from provision.targets.context import TargetContext
from provision.targets.vertex_job.resource_names import get_job_target

_OLDEST = (3, 10)
"""Oldest Python of the programs that run on the machines."""
_INSPECT = "`docker buildx imagetools inspect NAME:TAG` prints the digest of an image"


def refuse_image(context: TargetContext, image: ImageDescription) -> Iterator[Refusal]:
    """Yield why the machines of a job cannot run an image; nothing for an unknown one."""
    if image.unknown:
        return
    target, locked = get_job_target(context), context.lock.python
    route, name, python = ("targets", context.target, "image"), target.image, image.python
    minor = _read_minor(python)
    if not image.platforms:
        yield Refusal(route, f"the registry does not have the image {name}", _INSPECT)
    elif PLATFORM not in image.platforms:
        yield Refusal(
            route,
            f"the image {name} is for {', '.join(image.platforms)}; jobs run on {PLATFORM}",
            f"build it for {PLATFORM}: `docker buildx build --platform {PLATFORM}`",
        )
    elif minor is not None and minor < _OLDEST:
        yield Refusal(
            route,
            f"the image {name} has Python {python}; jobs need Python 3.10 or newer",
            f"use an image with a newer Python; {_INSPECT}",
        )
    elif minor is not None and target.environment == "baked" and "{}.{}".format(*minor) != locked:
        yield Refusal(
            route,
            f"the image {name} has Python {python}, the environment is locked for {locked}",
            f"build the image with Python {locked}, or set `environment: install`",
        )


def describe_image(image: ImageDescription) -> str:
    """Return the note about an image that is not refused."""
    if image.unknown:
        return f"image: not looked up: {image.unknown}"
    python = image.python if _read_minor(image.python) else "version unknown"
    return f"image: exists, for {PLATFORM}, Python {python}"


def _read_minor(version: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,3})\.(\d{1,3})(?!\d)", version)
    return (int(match[1]), int(match[2])) if match else None
