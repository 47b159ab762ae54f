"""Several targets, one after another: what fails at one is kept, and the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from provision.effects import ProgressCallback
from provision.errors import ProvisionError, StateError

ErrorsByTarget = dict[str, ProvisionError]
"""What stopped which target."""


def worst_exit_code(failed: ErrorsByTarget) -> int:
    """Return the exit code of several errors: 1 before 2 before 3; 0 for none."""
    codes = {error.exit_code for error in failed.values()}
    return next((code for code in (1, 2, 3) if code in codes), 0)


@contextmanager
def collect_errors(
    name: str,
    names: tuple[str, ...],
    failed: ErrorsByTarget | None,
    progress: ProgressCallback,
    settle: Callable[[ProvisionError], None] = lambda _: None,
) -> Iterator[None]:
    """Keep an error of one target among several in `failed`; of a single one, or without `failed`,
    it goes on its way, and so does one of the ledger.

    `settle` sees to what the error left, so that the others can go on; where it fails itself,
    nothing does.
    """
    try:
        yield
    except StateError:
        raise
    except ProvisionError as error:
        if len(names) == 1 or failed is None:
            raise
        try:
            settle(error)
        except ProvisionError as trouble:
            error.hint = "\n".join(
                filter(
                    None,
                    (
                        error.hint,
                        (
                            "what it left could not be settled, so no other target was begun: "
                            f"{trouble.what}"
                        ),
                    ),
                )
            )
            raise error from trouble
        progress(f"target {name} failed: {error.what}")
        failed[name] = error
