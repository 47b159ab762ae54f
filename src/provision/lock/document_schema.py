"""The shape of a lock's document: its parts and the kind of value of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_TEXTS = [str]
_SCHEMA: Mapping[str, Any] = {
    "schema": str,
    "digest": str,
    "written?": str,
    "asked": dict,
    "python": str,
    "environments": {
        "*": {
            "platform": str,
            "flavour": (str, None),
            "glibc": (str, None),
            "driver": (str, None),
            "digest": str,
        }
    },
    "targets": {
        "*": {
            "environments": _TEXTS,
            "because": str,
            "runtime?": str,
            "restart?": _TEXTS,
            "changed?": {"*": str},
            "added?": _TEXTS,
            "kept?": _TEXTS,
        }
    },
    "indexes": {"*": str},
    "packages": [
        {
            "name": str,
            "version": str,
            "index": str,
            "in?": _TEXTS,
            "origin?": str,
            "source?": {
                "path?": str,
                "editable?": bool,
                "git?": str,
                "commit?": str,
                "subdirectory?": str,
                "metadata": str,
                "build?": {"*": _TEXTS},
            },
            "requires": _TEXTS,
            "files": {"*": str},
        }
    ],
    "code?": {"git": str, "commit": str},
    "bounds?": [{"package": str, "specifier": str, "window": str}],
    "conda?": [
        {
            **dict.fromkeys(
                ("name", "version", "build", "channel", "subdir", "file", "sha256"), str
            ),
            **dict.fromkeys(("noarch?", "md5?"), str),
            "number?": int,
            "depends": _TEXTS,
            "constrains?": _TEXTS,
            "in": _TEXTS,
        }
    ],
}
_TYPE_NAMES: Mapping[Any, str] = {
    str: "a string",
    int: "a number",
    bool: "true or false",
    dict: "an object",
    None: "null",
}


def find_schema_errors(document: Any) -> Iterator[str]:
    """Yield one line for each part of a document that is missing, unknown or of the wrong kind."""
    yield from _schema_errors(document, _SCHEMA, "")


def _schema_errors(value: Any, form: Any, where: str) -> Iterator[str]:
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            yield f"{where or 'the document'}: expected an object"
            return
        yield from _schema_errors_of_parts(value, form, where)
    elif isinstance(form, list):
        if not isinstance(value, list):
            yield f"{where}: expected a list"
            return
        for number, item in enumerate(value):
            yield from _schema_errors(item, form[0], f"{where}[{number}]")
    else:
        kinds = form if isinstance(form, tuple) else (form,)
        if type(value) not in kinds and not (value is None and None in kinds):
            yield f"{where}: expected {' or '.join(_TYPE_NAMES[kind] for kind in kinds)}"


def _schema_errors_of_parts(
    value: Mapping[str, Any], form: Mapping[str, Any], where: str
) -> Iterator[str]:
    dot = f"{where}." if where else ""
    forms = {name.removesuffix("?"): kind for name, kind in form.items()}
    for name, item in value.items():
        if name not in forms and "*" not in forms:
            yield f"{dot}{name}: unknown key"
        else:
            yield from _schema_errors(item, forms.get(name, forms.get("*")), f"{dot}{name}")
    yield from (
        f"{dot}{name}: missing"
        for name in form
        if name != "*" and not name.endswith("?") and name not in value
    )
