"""Commands about instances as values, and their rendering in hints."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

Verb = Literal["delete", "delete-objects", "describe", "diagnose", "list", "read-console"]


class InstanceCommand(NamedTuple):
    """A command about an instance, or about all of a zone if `instance` is empty.

    For "delete-objects", `instance` is the address of a folder in a bucket.
    """

    verb: Verb
    project: str
    zone: str
    instance: str = ""


def to_gcloud(command: InstanceCommand) -> str:
    """Return the command line of gcloud."""
    verb, project, zone, instance = command
    if verb == "delete-objects":
        return f"gcloud storage rm --recursive {shlex.quote(instance)}"
    if verb == "read-console":
        return (
            f"gcloud compute instances get-serial-port-output {instance} "
            f"--project={project} --zone={zone}"
        )
    subject = f"{verb} {instance}".rstrip()
    bucket = " --gcs-path=gs://BUCKET" if verb == "diagnose" else ""
    return f"gcloud workbench instances {subject} --project={project} --location={zone}{bucket}"


_renderer: ContextVar[Callable[[InstanceCommand], str]] = ContextVar("renderer", default=to_gcloud)


def render_command(command: InstanceCommand) -> str:
    """Return a command as a hint names it: for gcloud, unless a renderer is set."""
    return _renderer.get()(command)


def instance_command(verb: Verb, name: str) -> str:
    """Return the command that applies a verb to the instance with a full name, for a hint."""
    _, project, _, zone, _, instance = name.split("/")
    return render_command(InstanceCommand(verb, project, zone, instance))


@contextmanager
def render_commands_with(renderer: Callable[[InstanceCommand], str]) -> Iterator[None]:
    """Render the commands in hints with a renderer (a sandbox has its own commands)."""
    token = _renderer.set(renderer)
    try:
        yield
    finally:
        _renderer.reset(token)
