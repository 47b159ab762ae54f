"""Entry point of the command line: sets the signal handlers before it imports anything else.

Whichever of SIGINT, SIGTERM and SIGHUP arrives, the exit code is 128 + its number, from the first
line here until the interpreter has ended. What Python does before that line cannot be covered: it
starts, runs the .pth files of the environment and imports this file. On two cores and Python 3.11
that takes 16 ms of the 80 ms of `provision --version`, 12 of them before any line of this package.
A signal that arrives then ends the process as any Python program: SIGINT with a traceback.
"""

from __future__ import annotations

import atexit
import signal

from provision.cli import signals

TYPE_CHECKING = False  # importing typing takes as long as all that is imported here
if TYPE_CHECKING:
    from provision.kinds import Registry


def run_cli(arguments: list[str] | None = None, registry: Registry | None = None) -> int:
    """Run the command line, as `main` does, and return the exit code."""
    signals.end_on_signals()
    atexit.register(signals.ignore_signals_at_exit)  # the first one registered runs last
    try:
        from provision.cli.main import main

        return main(arguments, registry)
    except (KeyboardInterrupt, signals.Terminated):
        # A second signal, just before `end_on_signals` after the first one.
        signals.exit_on_signal(signals.last_signal() or signal.SIGINT)
    finally:
        signals.clear_unhandled_interrupt()
