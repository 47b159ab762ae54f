"""Snapshots: one environment as a capture, a description of a machine or a report shows it."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from provision.agent.probe.machine_info import REPORTED_PACKAGES
from provision.agent.probe.machine_info import SCHEMA as MACHINE_SCHEMA
from provision.agent.probe.observing.variables import HARMFUL_VARIABLES
from provision.effects.system import Reader
from provision.errors import ExternalError
from provision.verification.report import SCHEMA as REPORT_SCHEMA
from provision.verification.report import find_tampering, read_report

CAPTURE_SCHEMA = "provision.capture/1"
MAX_SNAPSHOT_BYTES = 8 * 2**20
KINDS = {CAPTURE_SCHEMA: "capture", MACHINE_SCHEMA: "machine", REPORT_SCHEMA: "report"}
"""Words for documents, by schema."""
_MAX_ITEMS = 20_000
"""Packages, readings or variables of a document."""
_MAX_TEXT = 500
_HINT = (
    "use the output of `provision capture` or `provision env --output-format json`, or a "
    "verification's report.json"
)
_MACHINE_VARIABLES = "variable."
_REPORTED_VARIABLES = (
    *("CONDA_DEFAULT_ENV", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
)
"""Variables that `provision env` reports if they are set, in addition to harmful ones."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One environment.

    Attributes:
        name: The name of this side, for people.
        kind: capture, machine (`provision env`) or report.
        values: Values by key: readings, `package.NAME` with a version, `loaded.NAME` with the
            version of a loaded package that is not the installed one, `env.NAME` of a variable.
        requirers: For each package those that require it, as far as the document has them.
        distrust: The reason not to trust the document; "" for none.
        lists_packages: Whether `values` has every installed package.
    """

    name: str
    kind: str
    values: Mapping[str, Any]
    requirers: Mapping[str, frozenset[str]]
    distrust: str = ""
    lists_packages: bool = False

    @property
    def packages(self) -> dict[str, str]:
        """The installed packages with their versions."""
        return {
            key.removeprefix("package."): str(value)
            for key, value in self.values.items()
            if key.startswith("package.") and value is not None
        }

    def is_observed(self, key: str) -> bool:
        """Return whether the document shows a value, or that there is none."""
        if key in self.values:
            return True
        area, _, name = key.partition(".")
        match area:
            case "package":
                listed = name in REPORTED_PACKAGES or name.startswith("nvidia-")
                return self.lists_packages or (self.kind == "machine" and listed)
            case "loaded":
                return self.kind == "capture"
            case "env":
                reported = self.kind == "machine" and name in _REPORTED_VARIABLES
                return self.kind == "capture" or reported or name in HARMFUL_VARIABLES
            case _:
                return False


def read_document_bytes(path: Path, reader: Reader) -> bytes:
    """Return the bytes of a file that should be a document to compare.

    Raises:
        ExternalError: the file cannot be read.
    """
    try:
        return reader.read(path, MAX_SNAPSHOT_BYTES)
    except ExternalError as error:
        raise ExternalError(error.what, why=error.why, hint=error.hint or _HINT) from error


def read_snapshot(content: bytes, path: str, name: str) -> Snapshot:
    """Return the snapshot in a document.

    Args:
        content: The bytes of the document.
        path: The name of its file, for messages.
        name: The name of this side.

    Raises:
        ExternalError: not JSON, another schema, or a damaged document.
    """
    document = parse_document(content, path)
    schema = document["schema"]
    if schema == REPORT_SCHEMA:
        report = read_report(content, path)
        packages = {
            f"package.{row['name']}": row.get("observed")
            for row in report.differences
            if isinstance(row.get("name"), str)
        }
        packages |= {f"package.{key}": value for key, value in (report.installed or {}).items()}
        return _snapshot(name, REPORT_SCHEMA, {**packages, **report.values}, {}, report)
    for key in ("readings", "packages") if schema == CAPTURE_SCHEMA else ():
        if key not in document:
            raise damaged_document(path, f"it has no {key}")
    readings = _mapping(document, "readings", path)
    values = {
        f"env.{key.removeprefix(_MACHINE_VARIABLES)}"
        if key.startswith(_MACHINE_VARIABLES)
        else key: value
        for key, value in readings.items()
    }
    values |= _torch_readings(document)
    versions, requirers = _packages(_mapping(document, "packages", path), path)
    values |= {f"package.{key}": version for key, version in versions.items()}
    values |= dict(_capture_values(document, path))
    return _snapshot(name, schema, values, requirers, None)


def _snapshot(
    name: str, schema: str, values: dict[str, Any], requirers: Mapping[str, Any], report: Any
) -> Snapshot:
    for key, value in list(values.items()):
        if isinstance(value, str) and len(value) > _MAX_TEXT:
            values[key] = f"{value[:_MAX_TEXT]}..."
    values.pop("packages.digest", None)
    distrust, lists_packages = "", schema == CAPTURE_SCHEMA
    if report is not None:
        distrust, lists_packages = find_tampering(report), report.lists_all_packages
    values = {**_derived(values), **values}
    return Snapshot(name, KINDS[schema], values, requirers, distrust, lists_packages)


def parse_document(content: bytes, path: str) -> dict[str, Any]:
    """Return the document in a file, whose `schema` is one that can be compared.

    Raises:
        ExternalError: it is empty, not JSON, or of another schema.
    """
    encoding = "utf-8-sig"
    # PowerShell writes redirected output in UTF-16.
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if not content.strip():
        raise ExternalError(f"{path} is damaged", why="it is empty", hint=_HINT)
    try:
        document = json.loads(content.decode(encoding))
    except (ValueError, RecursionError) as error:
        if not content.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"{"):
            raise _foreign_document(path, "it is not valid JSON") from None
        why = f"it is not valid JSON: {str(error)[:200]}"
        raise ExternalError(f"{path} is damaged", why=why, hint=_HINT) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or schema not in KINDS:
        raise _unknown_schema(schema, path)
    return {**document, "schema": schema}


def _unknown_schema(schema: object, path: str) -> ExternalError:
    text = str(schema)[:60] if isinstance(schema, str) else ""
    family, _, version = text.rpartition("/")
    known = [name for name in KINDS if name.startswith(f"{family}/")]
    if known and version.isdigit():
        return ExternalError(
            f"{path} has the schema {text}, which this version cannot read",
            why=f"this version can read {known[0]}",
            hint="update `provision`, or write the file again with this version of it",
        )
    return _foreign_document(
        path, f"its schema is {text or 'missing'}; expected one of {', '.join(KINDS)}"
    )


def _foreign_document(path: str, why: str) -> ExternalError:
    return ExternalError(f"{path} is not a provision report or capture", why=why, hint=_HINT)


def damaged_document(path: str, why: str) -> ExternalError:
    """Return the error for a document whose values have another form than its schema."""
    return ExternalError(f"{path} is damaged", why=why, hint="create the file again")


def _mapping(document: Mapping[str, Any], key: str, path: str) -> dict[str, Any]:
    part = document.get(key, {})
    if not isinstance(part, dict):
        raise damaged_document(path, f"{key} is not an object")
    if len(part) > _MAX_ITEMS:
        raise damaged_document(path, f"{key} has {len(part)} entries, more than {_MAX_ITEMS}")
    return part


def _torch_readings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what torch reported to `provision env --torch`."""
    torch = document.get("torch")
    return torch if isinstance(torch, dict) and "error" not in torch else {}


def _packages(
    rows: Mapping[str, Any], path: str
) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Return versions, and the packages that require each package."""
    versions: dict[str, str] = {}
    requirers: dict[str, frozenset[str]] = {}
    for key, row in rows.items():
        version = row.get("version") if isinstance(row, dict) else row
        if not isinstance(version, str):
            raise damaged_document(path, f"package {key[:60]} has no version")
        name = str(canonicalize_name(key))
        versions[name] = version
        required = row.get("requires", ()) if isinstance(row, dict) else ()
        for other in required if isinstance(required, list) else ():
            other_name = str(canonicalize_name(str(other)))
            requirers[other_name] = requirers.get(other_name, frozenset()) | {name}
    return versions, requirers


def _capture_values(document: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Yield what only captures have: loaded packages, shadowed modules, names of variables."""
    for module in _mapping(document, "modules", path).values():
        if isinstance(module, dict) and isinstance(module.get("loaded"), str):
            yield f"loaded.{canonicalize_name(str(module.get('package')))}", module["loaded"]
    if isinstance(shadowed := document.get("shadowed"), list):
        yield "packages.shadowed", [_describe_shadow(row) for row in shadowed[:_MAX_ITEMS]]
    variables = document.get("variables")
    for name in variables[:_MAX_ITEMS] if isinstance(variables, list) else ():
        yield f"env.{name}", "set"


def _describe_shadow(row: object) -> str:
    """Return a module with the file that is imported instead, as the probe describes it."""
    if not isinstance(row, dict):
        return str(row)[:_MAX_TEXT]
    words = {key: str(row.get(key))[:100] for key in ("module", "file", "folder")}
    return "{module} from {file} in {folder}".format(**words)


def _derived(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return readings that follow from others, for documents that lack them."""
    derived: dict[str, Any] = {}
    python = values.get("python.version")
    if isinstance(python, str):
        derived["python.minor"] = ".".join(python.split(".")[:2])
    torch = values.get("package.torch")
    if isinstance(torch, str) and "+" in torch:
        build = torch.partition("+")[2]
        is_cuda = build.startswith("cu") and build[2:].isdigit()
        derived["torch.cuda"] = f"{build[2:-1]}.{build[-1]}" if is_cuda else None
    if "nvml.count" in values:
        derived["gpu.count"] = values["nvml.count"]
    return derived
