"""status, verify and report: what exists, and what its verification found."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.adapters import RealSystem
from provision.cli import console, report_import
from provision.cli.sandbox_hints import sandbox_folder
from provision.cli.session import load_session_spec, open_system
from provision.commands.shared.load import load_spec
from provision.commands.shared.target_plans import select_targets
from provision.errors import Refused, UsageError
from provision.verification import Report
from provision.verification.report import find_tampering, read_report_file

if TYPE_CHECKING:
    from provision.commands.shared.multi_target import ErrorsByTarget
    from provision.commands.verify import VerificationResult


def status(path: Path, form: str, *, sandbox: bool = False) -> int:
    """Show how the spec's targets stand; exit 0 when all is current and verified."""
    from provision.commands.status import status as look
    from provision.state_store import LocalStore

    with open_system(path, sandbox=sandbox) as world:
        loaded = load_session_spec(path, world, sandbox=sandbox, apart=True)
        report_import.import_dropped_reports(loaded, world)
        found = look(loaded, LocalStore(loaded.folder, world).load_ledger(), world)
    if form == "json":
        targets = [dataclasses.asdict(standing) for standing in found.targets]
        document = {
            "version": 1,
            "lock_moved": None if found.lock_differences is None else list(found.lock_differences),
            "targets": targets,
            "state_foreign": found.foreign_reason,
        }
        console.print_result(
            json.dumps({**document, "failed": console.errors_to_json(found.failed)}, indent=1)
        )
        console.print_errors(found.failed)
        return found.exit_code
    if found.lock_differences is None:
        console.print_text(f"lock         none yet: provision lock {shlex.quote(str(path))}")
    else:
        console.print_text(
            "lock         holds"
            if not found.lock_differences
            else "lock         stale: " + "; ".join(found.lock_differences)
        )
    if found.foreign_reason:
        console.print_text(
            f"state        foreign: {found.foreign_reason}; provision adopt "
            f"{shlex.quote(str(path))} makes it this folder's"
        )
    for t in found.targets:
        console.print_text(
            f"{t.target:<12} {t.kind}, "
            f"{t.condition}{f', {_display_path(t.path)}' if t.path and t.condition != 'absent' else ''}"  # noqa: E501
        )
        how = (
            f": run it, then provision report add FILE --spec {shlex.quote(str(path))}"
            if t.condition == "rendered"
            else ""
        )
        console.print_text(
            f"{'':<12} "
            f"{f'{t.verdict} at {t.verified_at}' if t.verdict else f'not verified{how}'}{f', but {t.outdated}' if t.outdated else ''}"  # noqa: E501
        )
    console.print_errors(found.failed)
    return found.exit_code


def verify(
    path: Path,
    targets: tuple[str, ...],
    *,
    everything: bool,
    only: tuple[str, ...],
    wait: float,
    sandbox: bool,
    **options: Any,
) -> int:
    """Verify the chosen targets again; the exit code is that of the worst verdict."""
    from provision.commands.verify import VerificationResult
    from provision.commands.verify import verify as prove

    failed: ErrorsByTarget = {}
    with open_system(path, sandbox=sandbox, faults=options["faults"]) as world:
        loaded = load_session_spec(path, world, sandbox=sandbox, faults=options["faults"])
        names = select_targets(loaded, targets, everything=everything)
        home = {
            one.context.target: one
            for one in report_import.import_dropped_reports(loaded, world, wait=wait).imported
        }
        left = tuple(name for name in names if name not in home)
        with console.progress() as (tell, _):
            done = (
                prove(loaded, left, world, tell, only=only, lock_wait_s=wait, failed=failed)
                if left
                else ()
            )
    done = (
        *(
            VerificationResult(
                home[name].report, home[name].json_path, home[name].html_path, home[name].state
            )
            for name in names
            if name in home
        ),
        *done,
    )
    return _show_results(done, failed, options["form"], verbose=options["verbose"])


def attach(
    path: Path, targets: tuple[str, ...], *, wait: float, sandbox: bool, **options: Any
) -> int:
    """Wait for the reports of instances that were not waited for; the exit code is that of the
    worst verdict.
    """
    from provision.commands.attach import attach as catch
    from provision.commands.attach import list_instance_targets

    failed: ErrorsByTarget = {}
    with open_system(path, sandbox=sandbox, faults=options["faults"]) as world:
        loaded = load_session_spec(path, world, sandbox=sandbox, faults=options["faults"])
        names = (
            select_targets(loaded, targets, everything=False)
            if targets
            else list_instance_targets(loaded, world)
        )
        if not names:
            words = shlex.quote(str(path)) + (" --sandbox" if sandbox else "")
            raise Refused(
                f"no instance is recorded for {loaded.stem}",
                hint=f"make one with `provision apply {words}`",
            )
        with console.progress() as (tell, _):
            done = catch(loaded, names, world, tell, lock_wait_s=wait, failed=failed)
    return _show_results(done, failed, options["form"], verbose=options["verbose"])


def open_(path: Path, targets: tuple[str, ...], *, sandbox: bool, form: str) -> int:
    """Show how a person gets onto the instances; exit 1 when one of them is not running."""
    from provision.commands.attach import list_instance_targets
    from provision.commands.open import describe_access

    with open_system(path, sandbox=sandbox) as world:
        loaded = load_session_spec(path, world, sandbox=sandbox)
        names = (
            select_targets(loaded, targets, everything=False)
            if targets
            else list_instance_targets(loaded, world)
        )
        if not names:
            words = shlex.quote(str(path)) + (" --sandbox" if sandbox else "")
            raise Refused(
                f"no instance is recorded for {loaded.stem}",
                hint=f"make one with `provision apply {words}`",
            )
        found = describe_access(loaded, names, world)
    if sandbox:
        found = tuple(dataclasses.replace(door, url="", ssh="", tunnel="") for door in found)
    if form == "json":
        console.print_result(
            json.dumps(
                {
                    "version": 1,
                    "sandbox": sandbox,
                    "instances": [dataclasses.asdict(door) for door in found],
                },
                indent=1,
            )
        )
    for door in found if form == "text" else ():
        console.print_text(
            f"instance     {door.instance}, "
            f"{door.state}{', SANDBOX: there is nothing to open' if sandbox else ''}"
        )
        if door.state != "ACTIVE":
            console.print_text(
                f"start it     provision apply {shlex.quote(str(path))} --target "
                f"{door.target}{' --sandbox' if sandbox else ''}"
            )
            continue
        if sandbox:
            console.print_text(
                f"disks        {sandbox_folder(path)}/machines/\nconsole      "
                f"{sandbox_folder(path)}/serial/"
            )
            continue
        console.print_text(
            "JupyterLab   "
            f"{door.url or 'no address: the instance is not registered with the proxy'}"
        )
        console.print_text(f"shell        {door.ssh}")
        console.print_text(f"tunnel       {door.tunnel}")
    return 0 if all(door.state == "ACTIVE" for door in found) else 1


def orphans(paths: tuple[Path, ...], *, sandbox: bool, form: str) -> int:
    """List instances with our labels that no state beside these specs knows; exit 1 when there are
    some.
    """
    from provision.commands.orphans import list_orphans

    with open_system(paths[0], sandbox=sandbox) as world:
        listing = list_orphans(
            [load_session_spec(path, world, sandbox=sandbox) for path in paths], world
        )
    found = listing.orphans
    console.print_errors(listing.failed, kind="project")
    away = (
        f"rm -r {shlex.quote(sandbox_folder(paths[0]))}   (all of this sandbox)" if sandbox else ""
    )
    if form == "json":
        rows = [{**dataclasses.asdict(one), "delete": away or one.delete} for one in found]
        failed = console.errors_to_json(listing.failed, kind="project")
        console.print_result(
            json.dumps(
                {"version": 1, "sandbox": sandbox, "orphans": rows, "failed": failed}, indent=1
            )
        )
    elif not found:
        where = (
            "in the projects that answered"
            if listing.failed
            else "every instance with our labels is in a state here"
        )
        console.print_text(
            f"{'SANDBOX: ' if sandbox else ''}no orphans{' ' if listing.failed else ': '}{where}"
        )
    for one in found if form == "text" else ():
        console.print_text(
            f"{'SANDBOX: ' if sandbox else ''}{one.name}\n  {one.state}, made "
            f"{one.created or 'at a time not told'}, for {one.spec}/{one.target}"
        )
        console.print_text(f"  {away or one.delete}")
    return listing.exit_code


def _display_path(place: str) -> str:
    return os.path.relpath(place) if place.startswith("/") else place


def _show_results(
    done: tuple[VerificationResult, ...], failed: ErrorsByTarget, form: str, *, verbose: bool
) -> int:
    console.print_errors(failed)
    if form == "json":
        results = [report_summary(v.report, v.json_path) for v in done]
        console.print_result(
            json.dumps(
                {"version": 1, "results": results, "failed": console.errors_to_json(failed)},
                indent=1,
            )
        )
    elif form == "junit":
        from provision.views.report.junit import render_junit

        console.print_result(render_junit(verified.report.displayed_document for verified in done))
    else:
        for verified in done:
            show_report(verified.report.displayed_document, verified.json_path, verbose=verbose)
            if verified.on_failure_note:
                console.print_text(f"left         {verified.on_failure_note}")
    codes = {
        *(verified.exit_code for verified in done),
        *(error.exit_code for error in failed.values()),
    }
    return next((code for code in (1, 2, 3) if code in codes), 0)


def report(
    path: Path, targets: tuple[str, ...], *, page: Path | None, verbose: bool, form: str
) -> int:
    """Show a stored report, or the report.json at `path`."""
    world = RealSystem()
    found = read_reports(path, targets, world)
    for one, report_path in found:
        if wrong := find_tampering(one):
            console.print_note(
                f"warning: {report_path} proves nothing: {wrong}; run `provision verify` "
                "for one that does"
            )
    if page is not None:
        _write_page(page, found, world)
    elif form == "junit":
        from provision.views.report.junit import render_junit

        console.print_result(render_junit(one.displayed_document for one, _ in found))
    elif form == "json":
        documents = [one.displayed_document for one, _ in found]
        whole = documents[0] if len(documents) == 1 else {"version": 1, "reports": documents}
        console.print_result(json.dumps(whole, indent=1, sort_keys=True))
    else:
        for one, report_path in found:
            show_report(one.displayed_document, report_path, verbose=verbose)
    return 0


def show_report(document: dict[str, Any], path: Path, *, verbose: bool) -> None:
    """Show a report's terminal form."""
    from provision.views.report import text

    console.print_result(
        text.render_report(
            document, console.supports_color(), console.width(), verbose, os.path.relpath(path)
        )
    )


def report_summary(found: Report, path: Path) -> dict[str, Any]:
    """Return what a program wants to know of a report."""
    return {
        "verdict": found.verdict,
        "sentence": found.sentence,
        "identity": found.identity,
        "report": str(path),
        "counts": found.document["verdict"].get("counts"),
        "packages": found.provenance,
    }


def _write_page(page: Path, found: list[tuple[Report, Path]], world: RealSystem) -> None:
    from provision.effects import WriteFile
    from provision.views.report import html

    if len(found) > 1:
        raise UsageError(
            "a page holds one report",
            why=", ".join(path.parent.name for _, path in found),
            hint="name one target with --target",
        )
    ((report, _),) = found
    world.perform(
        WriteFile(
            page,
            html.render_report(
                report.displayed_document, str(report.document["spec"].get("name", "report"))
            ),
            0o600,
        ),
        console.print_note,
    )
    console.print_note(f"wrote {page}")


def read_reports(
    path: Path, targets: tuple[str, ...], world: RealSystem
) -> list[tuple[Report, Path]]:
    """Return the report.json at `path`, or the stored reports of a spec's targets, each with its
    place. Raises Refused where one that is named has none.
    """
    if path.suffix == ".json":
        if targets:
            raise UsageError(
                f"--target chooses among the targets of a spec, and {path} is a report",
                hint="leave --target out",
            )
        return [(read_report_file(path, world), path)]
    loaded = load_spec(path, world)
    stored = {
        name: loaded.folder / "reports" / f"{loaded.stem}.{name}" / "report.json"
        for name in select_targets(loaded, targets, everything=True)
    }
    lacking = [name for name, place in stored.items() if not world.exists(place)]
    if lacking and (targets or len(lacking) == len(stored)):
        hint = f"make one with `provision apply {shlex.quote(str(path))}`"
        simulated = Path(
            sandbox_folder(path), "state", stored[lacking[0]].relative_to(loaded.folder)
        )
        if world.exists(simulated):
            hint += f"; the one of the sandbox: provision report {shlex.quote(str(simulated))}"
        raise Refused(
            f"there is no report of target {lacking[0]}",
            why=f"looked for {stored[lacking[0]]}",
            hint=hint,
        )
    return [
        (read_report_file(place, world), place)
        for name, place in stored.items()
        if name not in lacking
    ]
