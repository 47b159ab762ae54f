"""The probe's command line: one verification or one stage, its lines and its exit code."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ..core.files import write_atomically
from ..core.process import die_with_parent
from .catalogue import STAGES, known_check_ids, select_checks
from .expectations import load_expectations
from .model import Interrupted, JsonObject, ProbeError, Verdict
from .report_json import to_canonical_json

ERROR_EXIT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 verified or simulated, 1 failed, 2 no verdict, 3 unverified, 128 + signal."""
    options = _parser().parse_args(arguments)
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _interrupt)
    try:
        code: int = options.run(options)
    except ProbeError as error:
        return _print_error(str(error))
    except Interrupted as stopped:
        return 128 + stopped.signum
    except Exception as error:  # noqa: BLE001
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return _print_error(
            f"internal error of the probe: {type(error).__name__}: {error} "
            f"({os.path.basename(frame.filename)}:{frame.lineno})"
        )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="probe.pyz",
        description=(
            "Check that this Python environment matches its lock and that training works in it."
        ),
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    def add_verb(name: str, run: Callable[[argparse.Namespace], int], summary: str) -> Any:
        verb = verbs.add_parser(name, help=summary)
        verb.set_defaults(run=run)
        return verb

    _add_public_verbs(add_verb)
    _add_internal_verbs(add_verb)
    return parser


def _add_public_verbs(add_verb: Callable[..., Any]) -> None:
    verb = add_verb(
        "verify",
        _verify,
        "check the environment and write a report; the exit code is 0 for verified, 1 for "
        "failed, 2 for no verdict, 3 for unverified",
    )
    verb.add_argument(
        "--expectations", type=Path, required=True, help="expectations.json, created from the lock"
    )
    verb.add_argument("--out", type=Path, required=True, help="write the report to this path")
    verb.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        help="run only this check (repeatable); the verdict is then never `verified`",
    )
    verb.add_argument(
        "--events", action="store_true", help="print progress as one JSON object per line"
    )
    verb = add_verb(
        "env",
        _env,
        "describe this machine and this Python without expectations; does not import packages "
        "or write files",
    )
    verb.add_argument(
        "--torch",
        action="store_true",
        help="also import torch in a separate process, and show what torch reports",
    )
    verb.add_argument("--output-format", choices=["text", "json", "markdown"], default="text")


def _add_internal_verbs(add_verb: Callable[..., Any]) -> None:
    verb = add_verb("torch", _torch, "import torch and write what it reports (internal)")
    verb.add_argument("--out", type=Path, required=True)
    verb = add_verb("stage", _stage, "run stages in this process (internal)")
    verb.add_argument("names", nargs="+", choices=[stage.name for stage in STAGES], metavar="NAME")
    verb.add_argument("--expectations", type=Path, required=True)
    verb.add_argument(
        "--out",
        type=Path,
        required=True,
        action="append",
        metavar="FRAGMENT",
        help="one per NAME, in the same order",
    )
    verb.add_argument("--scratch", type=Path, required=True)
    verb.add_argument("--only", action="append", default=[], metavar="ID")
    verb = add_verb("rank", _rank, "run as one of several processes started by torchrun (internal)")
    verb.add_argument("backend", choices=["nccl", "gloo"])
    verb.add_argument("folder", type=Path)
    verb.add_argument("sizes", type=int, nargs="*", metavar="BYTES")


def _verify(options: argparse.Namespace) -> int:
    from .verify import verify

    expected = load_expectations(options.expectations)
    only = frozenset(options.only)
    for name in sorted(only - known_check_ids(expected)):
        raise ProbeError(f"--only {name}: no such check")
    if only and not select_checks(expected, only):
        raise ProbeError(
            f"--only {min(only)}: tier {expected.tier.value} does not include this check; use a "
            "higher verify.tier"
        )
    _require_writable(options.out)
    report_event = _print_event if options.events else _print_line
    document = verify(expected, options.expectations, only, report_event, os.environ)

    from .report import EXIT_CODES
    from .report_json import compact

    try:
        write_atomically(options.out, to_canonical_json(compact(document)) + "\n")
    except OSError as error:
        raise ProbeError(f"cannot write the report {options.out}: {error.strerror}") from None
    verdict = document["verdict"]
    report_event({"event": "verdict", "result": verdict["result"], "sentence": verdict["sentence"]})
    return EXIT_CODES[Verdict(verdict["result"])]


def _env(options: argparse.Namespace) -> int:
    from .machine_info import collect_machine_info
    from .machine_info_view import to_markdown, to_text

    document = collect_machine_info(os.environ, with_torch=options.torch)
    if options.output_format == "json":
        _print(json.dumps(document, indent=1, sort_keys=True))
    else:
        render = to_markdown if options.output_format == "markdown" else to_text
        _print(render(document).rstrip("\n"))
    return 0


def _torch(options: argparse.Namespace) -> int:
    from .machine_info import inspect_torch

    write_atomically(options.out, to_canonical_json(inspect_torch()) + "\n")
    return 0


def _stage(options: argparse.Namespace) -> int:
    from .stage import redirect_output, run_stage

    die_with_parent()
    if len(options.out) != len(options.names):
        raise ProbeError(
            f"{len(options.names)} stages require {len(options.names)} --out options, got "
            f"{len(options.out)}"
        )
    expected = load_expectations(options.expectations)
    for position, (name, out) in enumerate(zip(options.names, options.out, strict=True)):
        if position:
            redirect_output(options.scratch / f"{name}.log")
        run_stage(name, expected, out, options.scratch, options.only)
    # All is written. The exit functions run (multiprocessing removes its semaphores then), but
    # torch and its neighbours are not taken apart: on two busy cores that took 3 s of CPU in a
    # quick run, in which nothing is measured.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _rank(options: argparse.Namespace) -> int:
    from .proofs.allreduce import run_rank

    die_with_parent()
    run_rank(options.backend, options.folder, options.sizes, os.environ)
    return 0


def _require_writable(out: Path) -> None:
    try:
        with tempfile.TemporaryFile(dir=out.parent):
            pass
    except OSError as error:
        raise ProbeError(f"cannot write reports to {out.parent}: {error.strerror}") from None
    if out.is_dir():
        raise ProbeError(f"cannot write the report {out}: it is a folder")


def _interrupt(signum: int, _frame: FrameType | None) -> None:
    raise Interrupted(signum)


def _print_error(text: str) -> int:
    print(f"probe: {text}", file=sys.stderr)
    return ERROR_EXIT


def _print_event(event: JsonObject) -> None:
    _print(json.dumps(event, sort_keys=True))


def _print_line(event: JsonObject) -> None:
    if event["event"] == "verdict":
        _print(f"{event['result']}: {event['sentence']}")
    elif event["status"] == "finished":
        result = f"{event['failed']} failed" if event["failed"] else "ok"
        _print(f"{event['title']}: {result} ({event['seconds']:.1f} s)")


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except (BrokenPipeError, UnicodeEncodeError):
        # The reader is gone, or its terminal is not UTF-8; only the report matters.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
