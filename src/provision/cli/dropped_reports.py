"""Reports that people put into the folders of notebook targets."""

from __future__ import annotations

import os

from provision.cli.console import print_note
from provision.cli.error_output import print_error
from provision.commands.shared.load import LoadedSpec
from provision.commands.shared.report_inbox import InboxResult, process_inbox
from provision.effects.system import System
from provision.errors import StateError


def import_dropped_reports(
    loaded: LoadedSpec, system: System, *, lock_timeout: float = 0
) -> InboxResult:
    """File the reports in the folders of a spec's targets, and print the outcome for each file.

    A state that another provision locks is left alone.
    """
    try:
        result = process_inbox(loaded, system, print_note, lock_wait_s=lock_timeout)
    except StateError as error:
        print_note(
            f"what was dropped into the folder of reports is not looked at now: {error.what}"
        )
        return InboxResult()
    for report in result.imported:
        print_note(f"filed the report that was dropped for {report.context.address}")
    for path, reason in result.rejected:
        print_error(reason)
        print_note(f"  it lies in {os.path.relpath(path)} now, and is not looked at again")
    return result
