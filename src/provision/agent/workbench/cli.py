"""Command line on an instance: `run` a document, `launch` with secrets, `fetch` a program.

`unpack` writes the files of the project's code.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..core.agent_config import DocumentError, read_document
from ..core.code_files import CodeError, unpack_code
from .cloud import CloudClient, ServiceCallFailed
from .document import parse_document
from .instance import WorkbenchInstance, find_user_account
from .phases import run_phases
from .status import SecretRedactor, StatusReporter
from .uv_download import main as fetch

_METADATA = "http://169.254.169.254/computeMetadata/v1"
_SECRETS = "https://secretmanager.googleapis.com"
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when the run is done, 1 when a phase failed, 2 for an unusable document."""
    arguments = list(sys.argv[1:] if words is None else words)
    if arguments[:1] == ["launch"]:
        return _launch(arguments[1:])
    if arguments == ["fetch"]:
        return fetch()
    if arguments[:1] == ["unpack"]:
        return unpack(*arguments[1:])
    options = _parser().parse_args(arguments)
    try:
        document = read_document(options.document, parse_document)
        if document.nonce != options.nonce:
            raise DocumentError(
                "the document belongs to a different run: its nonce does not match this run's nonce"
            )
    except DocumentError as error:
        print(f"provision: {error}", flush=True)
        return 2
    os.chmod(options.document, 0o600)  # addresses of mirrors may contain passwords
    redactor = SecretRedactor()
    cloud = CloudClient(options.metadata, options.storage, options.secrets)
    user = cloud.read_metadata_attribute("jupyter-user") or ""
    account = find_user_account(user if _USER.fullmatch(user) else "jupyter")
    instance = WorkbenchInstance(account, options.work, redactor)
    reporter = StatusReporter(document, cloud, options.work, redactor, _print_line)
    return run_phases(document, instance, cloud, reporter, options.log)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="device.pyz",
        description="Sets up this instance as a document declares, verifies it, and reports.",
    )
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("run", help="set up and verify this instance")
    verb.add_argument("--document", type=Path, required=True, metavar="FILE")
    verb.add_argument(
        "--work",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder for this run's files",
    )
    verb.add_argument("--nonce", required=True, help="the nonce of this run")
    verb.add_argument(
        "--log", type=Path, required=True, metavar="FILE", help="upload this log at the end"
    )
    for service in ("metadata", "storage", "secrets"):
        verb.add_argument(f"--{service}", required=True, metavar="URL")
    return parser


def unpack(archive: str, digest: str, parent: str) -> int:
    """Unpack the code that came with a document. Return 0, or 2 if it cannot be used."""
    try:
        unpack_code(Path(archive).read_bytes(), digest, Path(parent))
    except CodeError as error:
        print(f"provision: {error}", file=sys.stderr)
    except OSError as error:
        print(f"provision: {error.filename}: {error.strerror or error}", file=sys.stderr)
    else:
        return 0
    return 2


def _launch(words: Sequence[str]) -> int:
    """Replace this process with a program that has the secrets in its variables only.

    The arguments are `--secret=NAME=REFERENCE ... -- PROGRAM ...`.
    """
    split = words.index("--") if "--" in words else len(words)
    references = dict(word.removeprefix("--secret=").partition("=")[::2] for word in words[:split])
    program = list(words[split + 1 :])
    if not program or not all(word.startswith("--secret=") for word in words[:split]):
        print("usage: launch --secret=NAME=REFERENCE ... -- PROGRAM ...", file=sys.stderr)
        return 2
    metadata = os.environ.get("PROVISION_METADATA", _METADATA)
    cloud = CloudClient(metadata, "", os.environ.get("PROVISION_SECRETS", _SECRETS))
    try:
        values = {name: cloud.read_secret(reference) for name, reference in references.items()}
        os.environ.update(values)
        os.execvp(program[0], program)
    except ServiceCallFailed as error:
        print(f"provision: {error}", file=sys.stderr)
    except OSError as error:
        print(f"provision: cannot start {program[0]}: {error.strerror or error}", file=sys.stderr)
    return 2


def _print_line(line: str) -> None:
    # The serial console shows stdout, the log file gets stderr.
    print(f"provision: {line}", flush=True)
    print(line, file=sys.stderr, flush=True)
