"""Notices about what keeps running and costs money, for every command that leaves a user alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

from provision.errors import ProvisionError
from provision.state import Ledger
from provision.targets import TargetContext, get_driver


def leftover_notice(contexts: Iterable[TargetContext], ledger: Ledger) -> str:
    """Return the notices of all targets that keep something running; "" for none."""
    notices = (get_driver(context).running_notice(context, ledger) for context in contexts)
    return "\n".join(notice for notice in notices if notice)


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
