"""A machine of the stand-in: a clone of the image, its folders and variables, and the notebooks
that run on it in real kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from provision.agent.probe.report_json import expand
from tests.colab_rig import image, smi

_NETWORK = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)


@dataclass
class Machine:
    """A folder with the interpreter (usr), a home, the notebook's folder (content) and a folder of
    programs; `variables` come on top of all others.

    `temporary` lies elsewhere: sockets are made there, and the path of one has room for a
    hundred characters.
    """

    folder: Path
    temporary: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def python(self) -> Path:
        """The interpreter that kernels run in."""
        return self.folder / f"usr/bin/python{image.PYTHON}"

    @property
    def site(self) -> Path:
        """Where its packages lie."""
        return self.folder / f"usr/lib/python{image.PYTHON}/site-packages"

    @property
    def content(self) -> Path:
        """The folder that notebooks run in."""
        return self.folder / "content"

    @property
    def base(self) -> Path:
        """The folder that the cell writes to."""
        return self.content / ".provision"

    @property
    def status(self) -> dict[str, object]:
        """What the cell wrote about its last run."""
        found: dict[str, object] = json.loads((self.base / "status.json").read_text())
        return found

    @property
    def report(self) -> dict[str, object]:
        """The report that the cell left."""
        found: dict[str, object] = expand(json.loads((self.base / "report.json").read_text()))
        return found

    @property
    def downloads(self) -> list[str]:
        """The files that were offered to the browser."""
        noted = self.folder / "downloads"
        return noted.read_text().splitlines() if noted.exists() else []

    def put(self, card: smi.Card | None) -> None:
        """Give the machine a card, or an nvidia-smi that finds none."""
        smi.install(self.folder / "tools", card, str(self.python))

    def keep(self, secrets: dict[str, str | None]) -> None:
        """Keep secrets for its notebooks; None for one that this notebook may not read."""
        path = self.folder / "secrets.json"
        path.write_text(json.dumps(secrets))
        path.chmod(0o600)
        self.variables["COLAB_RIG_SECRETS"] = str(path)

    def versions(self) -> dict[str, str]:
        """The packages that lie there, by the names of their folders."""
        stems = (
            path.name.removesuffix(".dist-info").rpartition("-")
            for path in self.site.glob("*.dist-info")
        )
        return {name.lower().replace("_", "-"): version for name, _, version in stems}

    def replace(self, path: Path, content: bytes) -> None:
        """Write a file of the machine anew: in place, it would change in the image too."""
        path.unlink()
        path.write_bytes(content)

    def environment(self) -> dict[str, str]:
        """The variables of a kernel there: Colab's own, and nothing of the caller's but the way to
        the network.
        """
        network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
        own = {
            "PATH": os.pathsep.join(
                [str(self.folder / "usr/bin"), str(self.folder / "tools"), "/usr/bin", "/bin"]
            ),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.temporary),
            "LANG": "C.UTF-8",
            "COLAB_RELEASE_TAG": "release-colab_20250807-060059_RC00",
            "COLAB_GPU": "",
            "UV_SYSTEM_PYTHON": "true",
            "COLAB_RIG_DOWNLOADS": str(self.folder / "downloads"),
            "PROVISION_CELL_BASE": str(self.base),
            "OMP_NUM_THREADS": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        shared = (
            sysconfig.get_config_var("LIBDIR")
            if sysconfig.get_config_var("Py_ENABLE_SHARED")
            else None
        )
        return {
            **network,
            **own,
            **({"LD_LIBRARY_PATH": str(shared)} if shared else {}),
            **self.variables,
        }


def boot(prefix: Path, folder: Path, cache: Path, uv: str) -> Machine:
    """Start a machine from the image; `cache` is uv's, shared by all machines so that a file is
    fetched once.
    """
    folder.mkdir(parents=True)
    image.clone(prefix, folder / "usr")
    for name in ("home", "content", "tools", "kernels/python3"):
        (folder / name).mkdir(parents=True)
    (folder / "tools/uv").symlink_to(uv)
    words = [
        str(folder / f"usr/bin/python{image.PYTHON}"),
        "-m",
        "colab_kernel_launcher",
        "-f",
        "{connection_file}",
    ]
    (folder / "kernels/python3/kernel.json").write_text(
        json.dumps({"argv": words, "display_name": "Python 3", "language": "python"})
    )
    return Machine(folder, Path(tempfile.mkdtemp(prefix="colab-")), {"UV_CACHE_DIR": str(cache)})


def end(machine: Machine) -> None:
    """Remove a machine: each holds links to every file of the image."""
    for path in (machine.content, *machine.content.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    for folder in (machine.folder, machine.temporary):
        shutil.rmtree(folder, ignore_errors=True)
