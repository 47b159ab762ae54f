"""Errors and interruptions of a command on several targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from provision.effects.system import ProgressCallback
from provision.errors import ProvisionError, StateError
from provision.state import Ledger
from provision.targets import TargetContext, get_driver

ErrorsByTarget = dict[str, ProvisionError]
"""The error that stopped a target, by its name."""


def worst_exit_code(codes: Iterable[int]) -> int:
    """Return the exit code of several results: 1 before 2 before 3; else 0."""
    return min((code for code in codes if code in (1, 2, 3)), default=0)


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
            note = "what it left could not be settled, so no other target was begun"
            error.hint = f"{error.hint}\n{note}: {trouble.what}".lstrip()
            raise error from trouble
        progress(f"target {name} failed: {error.what}")
        failed[name] = error


@contextmanager
def note_on_interrupt(note: Callable[[], str]) -> Iterator[None]:
    """Add a note to the last lines of a command that is interrupted in the block."""
    try:
        yield
    except Exception:
        raise
    except BaseException as interruption:
        with suppress(ProvisionError):  # a damaged ledger must not hide why the command ends
            if text := note():
                interruption.add_note(text)
        raise


def leftover_notice(contexts: Iterable[TargetContext], ledger: Ledger) -> str:
    """Return the notices about what keeps running and costs money; "" for none."""
    notices = (get_driver(context).running_notice(context, ledger) for context in contexts)
    return "\n".join(filter(None, notices))
