"""Elements of XML 1.0 with text from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree as ET

_BEYOND_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even as a reference (section 2.2)."""


def make_element(tag: str, attributes: Mapping[str, str], text: str = "") -> ET.Element:
    """Return an element; characters that XML does not allow are shown as escapes."""
    element = ET.Element(tag, {key: _escape(value) for key, value in attributes.items()})
    element.text = _escape(text) or None
    return element


def render_document(root: ET.Element) -> str:
    """Return an indented document."""
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _escape(text: str) -> str:
    return _BEYOND_XML.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
