"""Errors of one target among several: collected, while the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from provision.effects.system import ProgressCallback
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
    """Collect an error of one target among several in `failed`.

    The error of a single target, or without `failed`, is raised, and so is one of the ledger.
    `settle` handles what the error left, so that the others can go on; if it fails, they do not.
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
