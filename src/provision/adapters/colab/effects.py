"""Performs the effects on Colab."""

from __future__ import annotations

from collections.abc import Mapping

from provision.adapters import files
from provision.adapters.colab import runs
from provision.adapters.colab.cli_client import ColabCli
from provision.effects.colab import RunOnColab, StopColabSession
from provision.effects.service import ServiceEffect
from provision.effects.system import ProgressCallback
from provision.errors import ExternalError


def perform(
    effect: ServiceEffect, environment: Mapping[str, str], progress: ProgressCallback
) -> None:
    """Perform one effect through Google's `colab` program. May block for hours.

    Raises:
        ExternalError: the program is missing, is not signed in, or Colab refused.
        ReportUnavailable: no acceptable report came.
    """
    match effect:
        case RunOnColab():
            files.make_folder(effect.folder, 0o700)
            try:
                runs.refuse_unknown_machine(effect.gpu, high_memory=effect.high_memory)
                runtimes = ColabCli.from_environment(environment, effect.folder)
                runs.show_balance(runtimes, progress)
            except ExternalError as error:
                error.still_running = ()
                raise
            runs.perform_run(effect, runtimes, progress)
        case StopColabSession(session, folder):
            files.make_folder(folder, 0o700)
            runtimes = ColabCli.from_environment(environment, folder)
            runs.release_runtime(session, runtimes, progress)
        case _:
            raise AssertionError(f"not an effect on Colab: {effect!r}")
