"""provision env: what a bare machine is, told without a spec, without importing what is installed,
and without anything private.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from venv import create as create_venv

import pytest

from provision.agent.probe import machine_info_view
from provision.agent.probe.machine_info import collect_machine_info
from tests import fork_server
from tests.agent.probe.bench import write_package
from tests.conftest import ROOT
from tests.support import require

LISTED = """
import json, sys
from pathlib import Path
from provision.agent.probe.machine_info import collect_machine_info
found = collect_machine_info({}, Path(sys.argv[1]))
print(json.dumps([found["packages"], sorted({name.split(".")[0] for name in sys.modules})]))
"""


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    root = tmp_path / "env"
    create_venv(root, symlinks=True)
    return root


def add(venv: Path, name: str, code: str, version: str) -> None:
    write_package(next(venv.glob("lib/python*/site-packages")), name, code, version, "")


def provision(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(cwd),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = [*fork_server.ARGV, "env", *words]
    return fork_server.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, check=False, timeout=600
    )


def told(*words: str, cwd: Path, **variables: str) -> dict[str, Any]:
    done = provision(*words, "--output-format", "json", cwd=cwd, **variables)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_free_bytes_are_told_and_no_count_of_files() -> None:
    free = {
        "disk.tmp.free_bytes": 3 * 2**30,
        "disk.cache.free_bytes": 2**20,
        "disk.gone.free_bytes": None,
    }
    seen = {**free, "disk.tmp.free_files": 9, "disk.cache.free_files": 0}
    told = machine_info_view.to_text(
        {
            "readings": {
                **collect_machine_info({})["readings"],
                **dict.fromkeys(collect_machine_info({})["readings"]),
                **seen,
            },
            "packages": {},
            "unread": [],
        }
    )
    (row,) = [row for row in told.splitlines() if row.startswith("disk free")]
    assert row.split(maxsplit=2)[2] == "tmp 3 GiB, cache 1 MiB (no free inodes)"


def test_versions_are_told_without_importing_anything(venv: Path, tmp_path: Path) -> None:
    for name in ("torch", "transformers"):
        add(venv, name, "raise SystemExit('imported')", "9.9")
    code = f"import sys; sys.path.append({str(ROOT / 'src')!r})\n{LISTED}"
    done = subprocess.run(
        [venv / "bin/python", "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    packages, modules = json.loads(done.stdout)
    assert packages == {"torch": "9.9", "transformers": "9.9"}
    assert "provision" in modules
    assert not {"torch", "transformers", "numpy"} & set(modules)


@pytest.mark.long
def test_the_command_looks_from_the_interpreter_that_is_named(venv: Path, tmp_path: Path) -> None:
    add(venv, "torch", "raise SystemExit('imported')", "9.9+cpu")
    for named in (venv, venv / "bin/python"):
        found = told("--python", str(named), cwd=tmp_path)
        assert found["packages"] == {"torch": "9.9+cpu"}
        assert found["readings"]["python.environment"] == "virtual environment"
        assert found["torch"] is None
    on_path = told(cwd=tmp_path, PATH=f"{venv / 'bin'}:/usr/bin:/bin")
    assert on_path["packages"] == {"torch": "9.9+cpu"}


def test_without_a_python_on_the_path_our_own_is_asked(tmp_path: Path) -> None:
    done = provision(cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 0
    assert "there is no Python on PATH" in done.stderr
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in done.stdout


def test_a_python_on_the_path_that_does_not_run_is_no_error(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho 'no such interpreter' >&2\nexit 127\n")
    broken.chmod(0o755)
    done = provision(cwd=tmp_path, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 0
    assert "the Python that runs provision" in done.stderr
    named = provision("--python", str(broken), cwd=tmp_path)
    assert named.returncode == 2
    assert "exit code 127: no such interpreter" in named.stderr
    assert "--python" in named.stderr


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    done = provision("--python", "nowhere/python", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot start" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise ImportError('libcudnn.so.9: cannot open shared object file')\n", "libcudnn.so.9"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "signal 11"),
        ("import sys\nsys.exit('no licence')\n", "SystemExit: no licence"),
        ("import os\nos._exit(3)\n", "exit code 3"),
    ],
)
def test_a_torch_that_dies_on_import_is_told_and_the_rest_too(
    venv: Path, tmp_path: Path, code: str, says: str
) -> None:
    add(venv, "torch", code, "9.9")
    found = told("--torch", "--python", str(venv), cwd=tmp_path)
    assert says in found["torch"]["error"]
    assert found["readings"]["host.platform"]
    assert found["packages"] == {"torch": "9.9"}


A_TORCH = """
class Part:
    def __init__(self, **named): self.__dict__.update(named)

cpu = Part(get_cpu_capability=lambda: "AVX2")
cudnn = Part(is_available=lambda: True, version=lambda: 91002)
backends = Part(cpu=cpu, cudnn=cudnn, mps=Part(is_available=lambda: False))
cuda = Part(
    is_available=lambda: {there}, device_count=lambda: {there} * 2,
    get_device_name=lambda index: {name},
    get_device_capability=lambda index: (8, 9), get_arch_list=lambda: ["sm_89"],
    get_device_properties=lambda index: Part(name={name}), init=lambda: None,
)
__config__ = Part(show=lambda: "")
__version__, version, get_num_threads = "9.9+cu128", Part(cuda="12.8", git_version="0"), lambda: 2
set_num_threads = lambda number: None
_C = Part(_cuda_getArchFlags=lambda: "sm_89")
"""


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("there", "name", "says"),
    [
        (True, "'NVIDIA L4'", "detects 2 GPUs: NVIDIA L4, compute capability 8.9\n"),
        (False, "1 / 0", "does not detect a GPU\n"),
        (True, "1 / 0", "gpu.name: ZeroDivisionError: division by zero\n"),
    ],
)
def test_the_cards_that_torch_sees(
    venv: Path, tmp_path: Path, there: bool, name: str, says: str
) -> None:
    add(venv, "torch", A_TORCH.replace("{there}", str(there)).replace("{name}", name), "9.9")
    done = provision("--torch", "--python", str(venv), cwd=tmp_path)
    assert says in done.stdout, done.stdout
    assert "KeyError" not in done.stdout
    assert ("Error" in done.stdout) == ("Error" in says)


@pytest.mark.hf
def test_the_view_of_a_real_torch(hf_python: str, tmp_path: Path) -> None:
    found = told("--torch", "--python", hf_python, cwd=tmp_path)
    assert found["torch"]["torch.version"] == found["packages"]["torch"]
    assert found["torch"]["gpu.count"] == 0
    done = provision("--torch", "--python", hf_python, cwd=tmp_path)
    assert "does not detect a GPU" in done.stdout
    assert [key for key in found["torch"] if "error" in key] == []
    assert "Error" not in done.stdout


def test_nothing_private_is_told(venv: Path, tmp_path: Path) -> None:
    home = tmp_path / "home-of-someone"
    home.mkdir()
    token, secret = "hf_" + "A1b2C3d4" * 4, "s3cr3t-v4lue/with+signs"
    variables = {
        "HOME": str(home),
        "LOGNAME": "zelda.fitz",
        "MY_API_KEY": secret,
        "LD_LIBRARY_PATH": f"{home}/lib:/{secret}:/opt/zelda.fitz/{token}",
        "CUDA_VISIBLE_DEVICES": f"zelda@example.org {socket.gethostname()}",
        "PYTHONPATH": f"{home}/modules",
    }
    for form in ("text", "json", "markdown"):
        done = provision("--python", str(venv), "--output-format", form, cwd=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        names = (
            [socket.gethostname()]
            if len(socket.gethostname()) > 2 and socket.gethostname() != "localhost"
            else []
        )
        assert [
            word for word in (str(home), "zelda", token, secret, *names) if word in done.stdout
        ] == []
        assert "<redacted>" in done.stdout
        assert "~/lib" in done.stdout


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("name", "value", "left_out"),
    [
        ("AWS_SECRET_ACCESS_KEY", "/opt/lib-of-a-key", True),
        ("DB_PASSWD", "/opt/lib-of-a-key", True),
        ("TOKENIZERS_PARALLELISM", "/opt/lib-of-a-key", False),
        ("MONKEYS", "/opt/lib-of-a-key", False),
        ("SHORT_TOKEN", "/opt", False),
    ],
)
def test_only_values_of_secrets_are_left_out(
    tmp_path: Path, name: str, value: str, left_out: bool
) -> None:
    shown = collect_machine_info({name: value, "LD_LIBRARY_PATH": "/opt/lib-of-a-key"}, tmp_path)[
        "readings"
    ]["env.LD_LIBRARY_PATH"]
    assert shown == ("<redacted>" if left_out else "/opt/lib-of-a-key")


def test_foreign_text_is_harmless_in_every_form() -> None:
    document = {
        "readings": {"place.product": "a\x1b]0;owned\x07b ```\n@someone"},
        "packages": {},
        "torch": {"error": "```\x1b[2J"},
        "unread": [],
    }
    assert "\x1b" not in machine_info_view.to_text(document) + machine_info_view.to_markdown(
        document
    )
    assert machine_info_view.to_markdown(document).count("```") == 2


def test_on_a_narrow_terminal_lines_are_broken_between_words_and_nothing_is_lost() -> None:
    path = "/a/path/that/is/there/to/be/copied/and/longer/than/the/line/is/python"
    readings = {
        "host.cpu_flags": "sse4_2 avx avx2 fma avx512f avx512_bf16 avx512_vnni",
        "host.cpu_model": "AMD EPYC",
        "python.executable": path,
    }
    document = {
        "readings": readings,
        "packages": {},
        "torch": None,
        "unread": [],
        "tool": {"name": "provision", "version": "9.9"},
    }
    wide, narrow = machine_info_view.to_text(document), machine_info_view.to_text(document, 40)
    assert narrow.split() == wide.split()
    assert all(len(row) <= 40 or path in row for row in narrow.splitlines())
    assert all(row.startswith(" " * 12) for row in narrow.splitlines() if row[0] == " ")
    assert "reported by provision 9.9\n" in wide
    assert "no toolkit in /usr/local/cuda" in wide


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("environ", "files", "key", "value"),
    [
        (
            {"COLAB_RELEASE_TAG": "release-colab_20261101"},
            (),
            "place.product",
            "Google Colab release-colab_20261101",
        ),
        ({"VERTEX_PRODUCT": "WORKBENCH_INSTANCE"}, (), "place.product", "Vertex AI Workbench"),
        (
            {"VERTEX_PRODUCT": "COLAB_ENTERPRISE", "COLAB_RELEASE_TAG": "x"},
            (),
            "place.product",
            "Colab Enterprise",
        ),
        ({}, (("var/colab/hostname", ""),), "place.product", "Google Colab"),
        ({}, (("opt/deeplearning/metadata", ""),), "place.product", "Vertex AI Workbench"),
        ({}, (), "place.product", None),
        ({}, ((".dockerenv", ""),), "place.container", "docker"),
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            ((".dockerenv", ""),),
            "place.container",
            "kubernetes",
        ),
        (
            {},
            (("proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"),),
            "place.machine",
            "gVisor",
        ),
        (
            {},
            (("proc/version", "Linux version 5.15.1-microsoft-standard-WSL2"),),
            "place.machine",
            "WSL",
        ),
        (
            {},
            (("sys/class/dmi/id/product_name", "Google Compute Engine\n"),),
            "place.machine",
            "Google Compute Engine",
        ),
        (
            {},
            (("usr/local/cuda/version.json", '{"cuda": {"version": "12.8.1"}}'),),
            "cuda.toolkit",
            "12.8.1",
        ),
        ({}, (("usr/local/cuda/version.json", '["cuda"]'),), "cuda.toolkit", None),
        ({"CUDA_VISIBLE_DEVICES": ""}, (), "variable.CUDA_VISIBLE_DEVICES", ""),
        ({"CUDA_LAUNCH_BLOCKING": "1"}, (), "env.CUDA_LAUNCH_BLOCKING", "set"),
        ({}, (), "host.shm_bytes", 0),
    ],
)
def test_marks_of_a_place(
    tmp_path: Path,
    environ: dict[str, str],
    files: tuple[tuple[str, str], ...],
    key: str,
    value: Any,
) -> None:
    for name, content in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert collect_machine_info(environ, tmp_path)["readings"][key] == value


def test_limits_of_control_groups_are_told(tmp_path: Path) -> None:
    for name, text in {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": str(2**31),
        "sys/fs/cgroup/cpu.max": "150000 100000",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    document = collect_machine_info({}, tmp_path)
    assert document["readings"]["host.cgroup_ram_bytes"] == 2**31
    assert "limited to 2 GiB" in machine_info_view.to_text(document)
    assert "a quota of 1.5" in machine_info_view.to_text(document)
    assert "no /dev/shm" in machine_info_view.to_text(document)


def test_cards_are_seen_through_the_drivers_library(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")
    source = Path(__file__).parents[1] / "agent/probe/fake_nvml.c"
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(
        [
            str(compiler),
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{library.name}",
            "-o",
            str(library),
            str(source),
        ],
        check=True,
        capture_output=True,
    )
    done = provision(
        "--python",
        sys.executable,
        cwd=tmp_path,
        LD_LIBRARY_PATH=str(tmp_path),
        FAKE_NVML="count=2;used_mib=4000",
    )
    assert "580.82.07, for CUDA up to 13.0" in done.stdout
    assert "NVIDIA L4, NVIDIA L4, 3.906 GiB of 22.49 GiB in use" in done.stdout
    environ = {
        "LD_LIBRARY_PATH": str(tmp_path),
        "FAKE_NVML": "count=2",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    one = provision("--python", sys.executable, cwd=tmp_path, **environ)
    assert (
        "NVIDIA L4, 400 MiB of 22.49 GiB in use, CUDA_VISIBLE_DEVICES exposes 1 of 2" in one.stdout
    )
    lost = provision(
        "--python", sys.executable, cwd=tmp_path, LD_LIBRARY_PATH=str(tmp_path), FAKE_NVML="init=18"
    )
    assert lost.returncode == 0
    assert "NVML returned error 18" in lost.stdout


def test_it_runs_on_every_promised_python(pythons: list[str], tmp_path: Path) -> None:
    for python in pythons:
        found = told("--python", python, cwd=tmp_path, PATH="/usr/bin:/bin")
        assert found["readings"]["python.implementation"] == "cpython"
        assert found["unread"] == []
