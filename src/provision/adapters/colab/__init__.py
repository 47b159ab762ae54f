"""Colab from outside: a machine taken for one run, and given back. What speaks to the service is a
Runtimes (see provision.adapters.colab.runs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from provision.adapters import files
from provision.adapters.colab import runs
from provision.adapters.colab.cli_client import ColabCli
from provision.effects import ColabEffect, ProgressCallback, RunOnColab, StopColabSession
from provision.errors import ExternalError

__all__ = ["perform"]


def perform(effect: ColabEffect, environment: Mapping[str, str], tell: ProgressCallback) -> None:
    """Perform one effect through Google's own command line; raises WorldError, NoReport."""
    files.make_folder(effect.folder, 0o700)
    match effect:
        case RunOnColab():
            try:
                runs.refuse_unknown_machine(effect.gpu, high_memory=effect.high_memory)
                runtimes = ColabCli.from_environment(environment, effect.folder)
                runs.show_balance(runtimes, tell)
            except ExternalError as error:
                error.still_running = ()
                raise
            runs.perform_run(effect, runtimes, tell)
        case StopColabSession():
            runs.release_runtime(
                effect.session, ColabCli.from_environment(environment, effect.folder), tell
            )
        case _:
            assert_never(effect)
