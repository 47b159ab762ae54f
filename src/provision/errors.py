"""Our exceptions: what stops a command, with the exit code and the way out.

    ProvisionError          exit 2   could not be asked
    ├── UsageError          exit 2   the words on the command line do not fit
    ├── SourceError         exit 2   the spec's text cannot be read at all
    ├── Refused             exit 2   asked for something this version or this place does not do
    ├── WorldError          exit 2   disk, network, interpreter or program in the way
    │   ├── NetworkError    exit 2   an index could not be reached
    │   ├── CloudError      exit 2   a call that Google Cloud refused
    (provision.adapters.google.errors)
    │   └── NoReport        exit 3   a device sent no report that can be accepted; 1 where it
    failed (provision.adapters.google.report_polling)
    ├── StateError          exit 2   the ledger is damaged, foreign or locked
    ├── LockError           exit 1   what was asked does not hold: stale or damaged lock, no hash
    that fits
    │   └── Unsatisfiable   exit 1   no set of versions satisfies the spec
    │       └── NoCondaSet  exit 1   the index has one, and no conda channel has what goes with it
    └── Failed              exit 1   the answer is no: findings, failed verification
A finding about a spec is a `Diagnostic`, a value, never an exception.
"""

from __future__ import annotations


class ProvisionError(Exception):
    """A problem that a person can act on: `what` happened, `why`, and the way out in `hint`."""

    exit_code = 2

    def __init__(self, what: str, *, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint


class UsageError(ProvisionError):
    """The words on the command line do not fit together."""


class SourceError(ProvisionError):
    """The text of a spec or configuration file cannot be read."""


class Refused(ProvisionError):
    """Something was asked that is not done here, or not without a yes."""


class ExternalError(ProvisionError):
    """Disk, permissions, an interpreter or another program stands in the way.

    `still_running` names what an effect that costs money left running elsewhere: () for nothing,
    None when that is not known.
    """

    still_running: tuple[str, ...] | None = None


class NetworkError(ExternalError):
    """An index or service could not be reached."""


class StateError(ProvisionError):
    """The ledger in .provision/ is damaged, foreign, of a newer version, or held by another
    process.
    """


class LockError(ProvisionError):
    """No set of versions satisfies the spec, or the lock file is missing, stale or damaged."""

    exit_code = 1


class Unsatisfiable(LockError):
    """No set of versions satisfies the spec."""


class CondaUnsatisfiable(Unsatisfiable):
    """No set of conda packages goes with the locked versions: other versions of the index's
    packages are no way out that could be searched for.
    """


class CheckFailed(ProvisionError):
    """What was asked does not hold."""

    exit_code = 1
