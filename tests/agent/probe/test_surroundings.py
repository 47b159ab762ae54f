"""The kernel, the clock, the kind of place, a login shell and the libraries in memory, each looked
at for real and each in a case that is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.context import ObserverContext
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.observing import loaded_libraries
from provision.agent.probe.observing.host import OBSERVERS
from tests.agent.probe.bench import Environment, checks
from tests.support import require

Document = Callable[..., dict[str, Any]]


def test_a_clock_before_the_environment_fails_and_names_the_file(environment: Environment) -> None:
    environment.add("alpha")
    config = environment.root / "pyvenv.cfg"
    code, report, _ = environment.verify(tier="inventory")
    assert (code, checks(report)["H09"]["status"]) == (0, "pass")

    tomorrow = time.time() + 86400
    os.utime(config, (tomorrow, tomorrow))
    code, report, said = environment.verify(tier="inventory")

    found = checks(report)["H09"]
    assert (code, found["status"]) == (1, "fail"), said
    assert f"behind the modification time of {config}" in found["message"]
    assert "clock" in found["fix"]


@pytest.mark.parametrize(
    ("files", "environ", "seen"),
    [
        ({}, {}, {"host.place": None, "host.container": None, "host.machine": None}),
        (
            {".dockerenv": ""},
            {"COLAB_RELEASE_TAG": "release-colab_20261001"},
            {"host.place": "colab", "host.container": "docker", "host.machine": None},
        ),
        (
            {"opt/deeplearning/metadata/version": "1"},
            {},
            {"host.place": "workbench", "host.container": None, "host.machine": None},
        ),
        (
            {
                "sys/class/dmi/id/sys_vendor": "Google\n",
                "sys/class/dmi/id/product_name": "Google Compute Engine\n",
            },
            {},
            {"host.place": None, "host.container": None, "host.machine": "Google Compute Engine"},
        ),
        (
            {"proc/sys/kernel/osrelease": "6.1.1-fc-v1"},
            {},
            {"host.place": None, "host.container": None, "host.machine": "Firecracker"},
        ),
        (
            {"proc/cpuinfo": "flags\t: fpu hypervisor\n"},
            {},
            {"host.place": None, "host.container": None, "host.machine": "a virtual machine"},
        ),
        (
            {"var/colab/hostname": "", ".dockerenv": ""},
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            {"host.place": "colab", "host.container": "kubernetes", "host.machine": None},
        ),
        (
            {"run/.containerenv": ""},
            {"VERTEX_PRODUCT": "COLAB_ENTERPRISE", "COLAB_RELEASE_TAG": "x"},
            {"host.place": "colab-enterprise", "host.container": "podman", "host.machine": None},
        ),
    ],
)
def test_places_are_known_by_their_marks(
    tmp_path: Path,
    document: Document,
    files: dict[str, str],
    environ: dict[str, str],
    seen: dict[str, Any],
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    found = OBSERVERS["H11"](
        ObserverContext(parse_expectations(document()), tmp_path, root=tmp_path, environ=environ)
    )

    assert found == seen


def test_the_kernel_is_this_machines(tmp_path: Path, document: Document) -> None:
    assert (
        OBSERVERS["H03"](ObserverContext(parse_expectations(document()), tmp_path))["host.kernel"]
        == os.uname().release
    )


def test_what_a_login_shell_sets_against_the_spec_is_found(
    tmp_path: Path, document: Document
) -> None:
    (tmp_path / ".profile").write_text(
        'export MODE=other SAME=1 TOKEN=private PYTHONPATH=/somewhere\necho "welcome {"\n',
        encoding="utf-8",
    )
    for name in (".bash_profile", ".zprofile"):
        shutil.copy(tmp_path / ".profile", tmp_path / name)
    expected = parse_expectations(
        document(env={"MODE": "train", "SAME": "1", "TOKEN": "x", "ABSENT": "1"}, secrets=["TOKEN"])
    )

    found = OBSERVERS["W02"](ObserverContext(expected, tmp_path, environ={"HOME": str(tmp_path)}))

    assert found == {"login.differs": ["MODE", "PYTHONPATH"], "_login.values": {"MODE": "other"}}


def test_a_login_shell_that_does_not_come_to_an_end_is_unknown(
    tmp_path: Path, document: Document
) -> None:
    for name in (".profile", ".bash_profile", ".zprofile"):
        (tmp_path / name).write_text("exit 3\n", encoding="utf-8")

    assert OBSERVERS["W02"](
        ObserverContext(parse_expectations(document()), tmp_path, environ={"HOME": str(tmp_path)})
    ) == {"login.differs": None}


def test_variables_that_keep_the_hub_away_are_named(tmp_path: Path, document: Document) -> None:
    environ = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "YES", "HF_DATASETS_OFFLINE": "0"}

    found = OBSERVERS["E03"](
        ObserverContext(parse_expectations(document()), tmp_path, environ=environ)
    )

    assert found == {"hub.offline_by": ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]}


LOOK = (
    "import ctypes, json, sys\n"
    "from pathlib import Path\n"
    "sys.path.insert(0, sys.argv[1])\n"
    "from provision_probe.probe.expectations import parse_expectations\n"
    "from provision_probe.probe.context import ObserverContext\n"
    "from provision_probe.probe.observing import loaded_libraries\n"
    "for name in sys.argv[3:]: ctypes.CDLL(name)\n"
    "expected = parse_expectations(json.loads(sys.argv[2]))\n"
    "print(json.dumps(loaded_libraries.OBSERVERS['P08'](ObserverContext(expected, "
    "Path('.')))))\n"
)


@pytest.fixture
def runtime(tmp_path: Path) -> Callable[[Path, str], Path]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a library with")

    def made(folder: Path, name: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            str(compiler),
            "-shared",
            "-fPIC",
            "-x",
            "c",
            "/dev/null",
            f"-Wl,-soname,{name}",
            "-o",
            str(folder / name),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return folder

    return made


def looked(
    environment: Environment, document: Document, *names: str, **environ: str
) -> dict[str, Any]:
    command = [
        environment.python,
        "-c",
        LOOK,
        str(environment.probe),
        json.dumps(document()),
        *names,
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environ},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_library_put_in_front_of_the_wheels_is_seen_in_memory(
    environment: Environment,
    document: Document,
    tmp_path: Path,
    runtime: Callable[[Path, str], Path],
) -> None:
    own = runtime(
        next(environment.root.glob("lib/python*/site-packages")) / "torch/lib", "libgomp.so.1"
    )
    front = runtime(tmp_path / "front", "libgomp.so.1")

    inside = looked(environment, document, str(own / "libgomp.so.1"))
    in_front = looked(environment, document, "libgomp.so.1", LD_LIBRARY_PATH=str(front))
    both = looked(
        environment,
        document,
        str(own / "libgomp.so.1"),
        LD_PRELOAD=str(runtime(tmp_path / "other", "libcudnn.so.9") / "libcudnn.so.9"),
    )

    assert (inside["libraries.outside"], inside["libraries.openmp"]) == ([], ["libgomp.so.1"])
    assert in_front["libraries.outside"] == [str(front / "libgomp.so.1")]
    assert both["libraries.outside"] == [str(tmp_path / "other/libcudnn.so.9")]


def test_two_runtimes_of_one_environment_are_both_told(
    environment: Environment, document: Document, runtime: Callable[[Path, str], Path]
) -> None:
    site = next(environment.root.glob("lib/python*/site-packages"))
    one, other = runtime(site / "torch/lib", "libgomp.so.1"), runtime(site / "mkl", "libiomp5.so")

    found = looked(environment, document, str(one / "libgomp.so.1"), str(other / "libiomp5.so"))

    assert (found["libraries.outside"], found["libraries.openmp"]) == (
        [],
        ["libgomp.so.1", "libiomp5.so"],
    )


def test_a_file_that_is_linked_into_the_environment_counts_as_its_own(
    environment: Environment,
    document: Document,
    tmp_path: Path,
    runtime: Callable[[Path, str], Path],
) -> None:
    folder = next(environment.root.glob("lib/python*/site-packages")) / "torch/lib"
    folder.mkdir(parents=True)
    (folder / "libgomp.so.1").symlink_to(
        runtime(tmp_path / "cache", "libgomp.so.1") / "libgomp.so.1"
    )

    found = looked(environment, document, str(folder / "libgomp.so.1"))

    assert found["libraries.openmp"] == ["libgomp.so.1"]
    assert found["libraries.outside"] == []


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("libcudnn.so.9", True),
        ("libcudnn_ops.so.9", True),
        ("libcublasLt.so.13", True),
        ("libnccl.so.2", True),
        ("libcudart-9335f6a2.so.12", True),
        ("libgomp-e985bcbb.so.1.0.0", True),
        ("libiomp5.so", True),
        ("libcuda.so.1", False),
        ("libompitrace.so.40", False),
        ("libtorch_cuda.so", True),
        ("libc10.so", True),
        ("libnvJitLink.so.13", True),
        ("libcusparseLt.so.0", True),
        ("libstdc++.so.6", False),
    ],
)
def test_which_libraries_are_watched(name: str, watched: bool) -> None:
    assert bool(loaded_libraries.WATCHED_LIBRARIES.fullmatch(name)) is watched


def test_where_no_memory_map_is_told_nothing_is_claimed(tmp_path: Path, document: Document) -> None:
    found = loaded_libraries.OBSERVERS["P08"](
        ObserverContext(parse_expectations(document()), tmp_path, root=tmp_path)
    )

    assert found["libraries.outside"] is None
    assert (
        sys.platform != "linux"
        or loaded_libraries.OBSERVERS["P08"](
            ObserverContext(parse_expectations(document()), tmp_path)
        )["libraries.outside"]
        is not None
    )
