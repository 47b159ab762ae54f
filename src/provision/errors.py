"""Our exceptions: what stops a command, with its exit code and a hint.

    ProvisionError              exit 2  the command could not run
    ├── UsageError              exit 2  the arguments do not fit together
    ├── SourceError             exit 2  the spec's text cannot be read
    ├── Refused                 exit 2  not supported here, or not without confirmation
    ├── ExternalError           exit 2  disk, network, interpreter or program
    │   ├── NetworkError        exit 2  an index or service cannot be reached
    │   ├── CloudError          exit 2  Google Cloud refused (adapters.google.errors)
    │   └── ReportUnavailable   exit 3  no acceptable report of a device; exit 1 for a failed device
    ├── StateError              exit 2  the state is damaged, foreign or locked
    ├── LockError               exit 1  the lock is stale or damaged, or a hash differs
    │   └── Unsatisfiable       exit 1  no set of versions satisfies the spec
    │       └── CondaUnsatisfiable      no set of conda packages fits the locked versions
    └── CheckFailed             exit 1  findings, or a failed verification

A finding about a spec is a `Diagnostic`, a value, never an exception.
"""

from __future__ import annotations


class ProvisionError(Exception):
    """A problem that a person can act on: what happened, why, and a hint."""

    exit_code = 2

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint


class UsageError(ProvisionError):
    """The arguments of the command line do not fit together."""


class SourceError(ProvisionError):
    """The text of a spec or configuration file cannot be read."""


class Refused(ProvisionError):
    """The request is not supported here, or requires a confirmation."""


class ExternalError(ProvisionError):
    """Disk, permissions, an interpreter or another program prevents the command.

    `still_running` names what an effect that costs money left running: () for nothing, None for
    unknown.
    """

    still_running: tuple[str, ...] | None = None


class BuildRequirementsError(ExternalError):
    """The locked build requirements of a package cannot be installed on this machine."""


class NetworkError(ExternalError):
    """An index or service could not be reached."""


class StateError(ProvisionError):
    """The state in .provision/ is damaged, foreign, too new, or locked by another process."""


class LockError(ProvisionError):
    """No set of versions satisfies the spec, or the lock file is missing, stale or damaged."""

    exit_code = 1


class Unsatisfiable(LockError):
    """No set of versions satisfies the spec."""


class CondaUnsatisfiable(Unsatisfiable):
    """No conda packages fit the locked versions; other versions of the index would not help."""


class CheckFailed(ProvisionError):
    """The result of the check is negative."""

    exit_code = 1
