"""Text of the first cell: a program that is the same for every spec, with a document as data."""

from __future__ import annotations

import ast
import base64
import functools
import hashlib
import io
import json
import lzma
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from provision.agent.core.files import PROGRAMS, zip_files
from provision.assets import find_asset
from provision.targets.context import TargetContext
from provision.targets.install_request import pack_own_wheels
from provision.verification import device_files


def build_payload_members(context: TargetContext) -> Mapping[str, bytes]:
    """Return the programs, and archives of a target's code and packages, by name."""
    archives = pack_own_wheels(context)
    programs = (
        device_files.notebook_zipapp(),
        device_files.installer_zipapp(),
        device_files.probe_zipapp(),
    )
    if context.code is not None:
        archives |= context.code.pack_members()
    return {
        **archives,
        **dict(zip(PROGRAMS, programs, strict=True)),
    }


def read_template(name: str) -> str:
    """Return the program of a cell: "cell" makes the environment, "verify" shows the report.

    "run" runs a script in an isolated environment.
    """
    return find_asset(f"templates/colab-{name}.py").read_text(encoding="utf-8")


PLACEHOLDER = '{"ABOUT": "HERE"}'
"""The literal in the templates that is replaced with the description of the cell."""
_LINE = 120
# Every option is set, so that the output does not depend on defaults of liblzma. A longer search
# (BT4, nice_len 64, depth 48) saves 1 to 3 % of the size and takes 10 to 40 % more time.
_FILTER = {
    "id": lzma.FILTER_LZMA2,
    "dict_size": 2**22,
    "lc": 3,
    "lp": 0,
    "pb": 2,
    "mode": lzma.MODE_NORMAL,
    "nice_len": 32,
    "mf": lzma.MF_BT3,
    "depth": 16,
}


def build_payload(document: bytes, members: Mapping[str, bytes]) -> bytes:
    """Return the payload: a zip file of the programs and the document, reproducible."""
    return zip_files({"document.json": document, **members}, first=PROGRAMS)


def digest_payload(payload: bytes) -> str:
    """Return the digest that a cell checks its payload by, in hexadecimal digits."""
    return hashlib.sha256(payload).hexdigest()


def encode_payload(payload: bytes, existing: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a payload as lines of text.

    Its programs are compressed apart from the rest. A part that the lines of an existing cell
    contain is taken from there: compressing the programs takes 0.4 s of CPU, and reading them
    0.02 s.
    """
    streams: Mapping[bytes, bytes] = {}
    with suppress(ValueError, TypeError):
        streams = _read_streams("".join(existing))
    parts = (streams.get(part) or compress(part) for part in _split_payload(payload))
    text = base64.b85encode(b"".join(parts)).decode()
    return tuple(text[start : start + _LINE] for start in range(0, len(text), _LINE))


@functools.lru_cache(maxsize=4)
def compress(content: bytes) -> bytes:
    """Return a stream of xz; cached, as one command needs the same repeatedly."""
    return lzma.compress(content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=[_FILTER])


def _split_payload(payload: bytes) -> tuple[bytes, ...]:
    """Return the programs at the beginning of a payload, and the rest."""
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            others = [member for member in archive.infolist() if member.filename not in PROGRAMS]
    except zipfile.BadZipFile:
        return (payload,)
    end = min((member.header_offset for member in others), default=0)
    return tuple(filter(None, (payload[:end], payload[end:])))


@functools.lru_cache(maxsize=2)
def _read_streams(text: str) -> Mapping[bytes, bytes]:
    """Return the compressed streams in a payload's text by their content, in their order.

    Cached, as one command needs the same repeatedly. Raises ValueError if there is none.
    """
    data, streams = base64.b85decode(text), dict[bytes, bytes]()
    try:
        while data or not streams:
            decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            content = decompressor.decompress(data)
            if not decompressor.eof:
                raise ValueError("the payload is incomplete")
            rest = decompressor.unused_data
            streams[content] = data[: len(data) - len(rest)]
            data = rest
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from None
    return streams


def decode_payload(lines: Sequence[str]) -> bytes:
    """Return the payload in lines of text. Raises ValueError if there is none."""
    return b"".join(_read_streams("".join(lines)))


def render_cell(
    about: Mapping[str, Any],
    payload: Sequence[str],
    addresses: Sequence[str] = (),
    code: Sequence[str] = (),
) -> str:
    """Return the cell's text.

    `about` describes the cell for people; the payload follows as lines, or as its addresses, and
    the description of the code for the next rendering.
    """
    places = {"payload_urls": list(addresses), "payload": [] if addresses else list(payload)}
    places |= {"code": list(code)} if code else {}
    return read_template("cell").replace(PLACEHOLDER, to_literal({**about, **places}))


def fill_template(template: str, about: Mapping[str, Any]) -> str:
    """Return the text of another cell."""
    return template.replace(PLACEHOLDER, to_literal(about))


@functools.lru_cache(maxsize=8)
def parse_about(text: str) -> Mapping[str, Any] | None:
    """Return the document in a cell's text; None if there is none.

    Cached: one command reads the same cell about ten times, at 10 ms each.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "ABOUT"
            and isinstance(node.value, ast.Dict)
        ):
            try:
                return dict(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def is_same_cell(left: str, right: str) -> bool:
    """Return whether two cells have the same program and data, however these are compressed."""
    if left == right:
        return True
    abouts = [parse_about(text) for text in (left, right)]
    if None in abouts:
        return False
    first, second = ({**about} for about in abouts if about is not None)
    compressed = [[about.pop(key, []) for about in (first, second)] for key in ("payload", "code")]
    return (
        first == second
        and _without_payload(left) == _without_payload(right)
        and all(_is_same_payload(*lines) for lines in compressed)
    )


def to_literal(about: Mapping[str, Any]) -> str:
    """Return strings, numbers and lists of them as a Python literal, one key per line.

    It is JSON, except for characters that JSON writes as surrogate pairs.
    """
    return (
        "{\n"
        + "".join(f"    {_text(key)}: {_value(value)},\n" for key, value in about.items())
        + "}"
    )


def _value(value: Any) -> str:
    if isinstance(value, list):
        return (
            "["
            + "".join(f"\n        {_text(item)}," for item in value)
            + ("\n    ]" if value else "]")
        )
    return str(value) if isinstance(value, int) else _text(value)


def _text(text: str) -> str:
    # Python reads a surrogate pair, as JSON writes it, as two characters.
    return json.dumps(text) if text.isascii() or max(text) < "\U00010000" else ascii(text)


def _without_payload(text: str) -> str:
    before, _, after = text.partition('"payload": [')
    return before + after.partition("\n}")[2]


def _is_same_payload(left: Any, right: Any) -> bool:
    if not (isinstance(left, list) and isinstance(right, list)):
        return False
    if not all(isinstance(line, str) for line in (*left, *right)):
        return False
    try:
        return decode_payload(left) == decode_payload(right) if left and right else left == right
    except ValueError:
        return False
