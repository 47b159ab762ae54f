"""Colab from outside: a machine taken for one run, and given back. What speaks to the service is a Runtimes (see provision.world.colab.runs)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from provision.effects import OnColab, RunOnColab, StopColab, Tell
from provision.errors import WorldError
from provision.world import files
from provision.world.colab import runs
from provision.world.colab.command_line import CommandLine

__all__ = ["perform"]


def perform(effect: OnColab, environment: Mapping[str, str], tell: Tell) -> None:
    """Perform one effect through Google's own command line; raises WorldError, NoReport."""
    files.make_folder(effect.folder, 0o700)
    match effect:
        case RunOnColab():
            try:
                runs.refuse_unknown(effect.gpu, high_memory=effect.high_memory)
                runtimes = CommandLine.found(environment, effect.folder)
                runs.tell_balance(runtimes, tell)
            except WorldError as error:
                error.left = ()
                raise
            runs.run(effect, runtimes, tell)
        case StopColab():
            runs.stop(effect.session, CommandLine.found(environment, effect.folder), tell)
        case _:
            assert_never(effect)
