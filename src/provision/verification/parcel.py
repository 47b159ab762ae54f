"""The probe as one file that any Python from 3.10 on can run: a zipapp with the same bytes every time."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import provision

_MAIN = "import sys\n\nfrom provision_probe.cli import main\n\nsys.exit(main())\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def parcel() -> bytes:
    """Return the zipapp: the probe's package under the name provision_probe, and a __main__.py. Source files only, sorted, with one fixed time."""
    folder = Path(provision.__file__).parent / "probe"
    files = {f"provision_probe/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in folder.rglob("*.py")}
    files["__main__.py"] = _MAIN.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return buffer.getvalue()
