"""The promises about instances of Vertex AI Workbench, measured on the sandbox: what our side
costs, and how soon an environment is in place.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.timing import Call, Cost, Unmeasured, alternate, cost, total
from benchmarks.workshop import Workshop
from provision.assets import find_asset
from provision.sandbox.namespace_booter import NamespaceBooter

_BOOTED = Path(__file__).with_name("booted.py")
_PACKAGES = "transformers>=5.13, safetensors"
_SPEC = """gpu: none
python: "{python}"
packages: [{packages}]
training: {{framework: none}}
targets:
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    image: workbench-instances-2603-20261004-2157-rc0
    bucket: gs://my-bucket/p
    service_account: trainer@my-project.iam.gserviceaccount.com
    nat: true
    max_lifetime: 8h
"""


def apply(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure one `provision apply --sandbox` on a new project, and the calls of uv in it made by
    hand.

    The cost is that of the process and the children it waited for. It waits for no device: what
    runs there is not in it. The services of the sandbox are:
    they run in the same process.
    """
    _isolated(workshop)
    words = (
        "apply",
        str(_project(workshop, "workbench-recorded", "safetensors")),
        "--sandbox",
        "--yes",
    )
    replay = workshop.recorded("workbench", *words)

    def ours() -> Cost:
        return cost(
            workshop.script(
                "provision",
                "apply",
                str(_project(workshop, "workbench", "safetensors")),
                "--sandbox",
                "--yes",
            )
        )

    return alternate(ours, lambda: total(replay.prepare()), rounds=5)


def install(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure a device from boot until its packages are in place, by our program and by the same
    one with a plain `pip install -r`.
    """
    return _installing(workshop, "pip")


def install_uncompiled(workshop: Workshop) -> tuple[Cost, Cost | None]:
    """Measure the same with a pip that leaves bytecode to the first import, as uv does."""
    return _installing(workshop, "pip-no-compile")


def _installing(workshop: Workshop, peer: str) -> tuple[Cost, Cost | None]:
    _isolated(workshop)
    with _mirror(workshop) as index:

        def booted(way: str) -> Cost:
            call = workshop.python(
                "-P", str(_BOOTED), way, str(_project(workshop, f"workbench-{way}", _PACKAGES))
            )
            return Cost(*json.loads(_said(replace(call, environment=_pointed(call, index)))))

        return alternate(lambda: booted("uv"), lambda: booted(peer), rounds=3)


@contextmanager
def _mirror(workshop: Workshop) -> Iterator[str]:
    """Serve what the device will ask for, and give the index's address."""
    folder = workshop.folder / "mirror"
    uv = json.loads(find_asset("templates/workbench-uv.json").read_bytes())
    wanted = [*_PACKAGES.split(", "), f"uv=={uv['version']}"]
    cost(
        workshop.python(
            "-m",
            "pip",
            "download",
            "--quiet",
            "--only-binary=:all:",
            "--dest",
            str(folder / "files"),
            *wanted,
        )
    )
    for file in sorted((folder / "files").iterdir()):
        place = folder / re.sub(r"[-_.]+", "-", file.name.partition("-")[0]).lower()
        place.mkdir(exist_ok=True)
        shutil.move(file, place / file.name)
        (place / "index.html").write_text(
            "".join(f'<a href="{one.name}">{one.name}</a>' for one in sorted(place.glob("*.whl")))
        )
    words = (
        sys.executable,
        "-u",
        "-m",
        "http.server",
        "0",
        "--bind",
        "127.0.0.1",
        "--directory",
        str(folder),
    )
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"port (\d+)", server.stdout.readline())
            if found is None:
                raise Unmeasured("the mirror does not start")
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            server.terminate()


def _pointed(call: Call, index: str) -> dict[str, str]:
    """Return the variables of a call, with this index and no other."""
    kept = {
        name: value
        for name, value in call.environment.items()
        if not name.startswith(("PIP_", "UV_")) or name == "UV_CACHE_DIR"
    }
    return {
        **kept,
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_INDEX_URL": index,
        "UV_PYTHON_DOWNLOADS": "never",
        "GRPC_VERBOSITY": "NONE",
    }


def _said(call: Call) -> str:
    done = subprocess.run(
        call.argv,
        env=dict(call.environment),
        cwd=call.cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Unmeasured(
            f"{Path(call.argv[2]).name}: exit code {done.returncode}\n{done.stderr[-1500:]}"
        )
    return done.stdout


def _isolated(workshop: Workshop) -> None:
    """Raise Unmeasured where this machine can isolate no device."""
    if why := NamespaceBooter(workshop.folder).unavailable_reason():
        raise Unmeasured(f"a device of the sandbox needs an isolated root: {why}")


def _project(workshop: Workshop, name: str, packages: str) -> Path:
    spec = workshop.project(name, locked=False)
    spec.write_text(
        _SPEC.format(python=f"{sys.version_info.major}.{sys.version_info.minor}", packages=packages)
    )
    return spec
