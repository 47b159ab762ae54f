"""Fixtures shared by all tests: a bench with its own index, and one real Hugging Face environment for the whole session."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conda_rig import CondaChannel, conda_channel
from tests.pytorch_rig import PyTorch, lay_out
from tests.rig import Bench, make_index, make_wheel

ROOT = Path(__file__).parent.parent
# As the command line sets it: uv is started beside gRPC's threads, whose handlers of a fork may end it. gRPC reads it when it is imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
# Who starts the tests by nohup, or in the background of a script, ignores these for all that they start, and some of that is about them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty project with an index of three small packages: alpha 1.0 and 2.0, beta (needs alpha<2), gamma (needs alpha>=2)."""
    wheels = tmp_path / "wheels"
    made = (
        make_wheel(wheels, "alpha", "1.0"),
        make_wheel(wheels, "alpha", "2.0"),
        make_wheel(wheels, "beta", "1.0", requires=("alpha<2",)),
        make_wheel(wheels, "gamma", "1.0", requires=("alpha>=2",)),
    )
    folder = tmp_path / "project"
    (folder / "home").mkdir(parents=True)
    return Bench(folder, make_index(tmp_path / "index", made))


@pytest.fixture(scope="session")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> PyTorch:
    """PyTorch's indexes as small wheels, made once; read only."""
    return lay_out(tmp_path_factory.mktemp("pytorch"))


@pytest.fixture(scope="session")
def conda() -> CondaChannel:
    """A conda channel with a real Python, made once for all sessions; read only. Below pytest's own folder, which git ignores."""
    pytest.importorskip("rattler_build", reason="the channel is made with py-rattler-build")
    return conda_channel(ROOT / ".pytest_cache/conda")


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of specs/quickstart.yaml, applied for real with the machine's own package sources; the folder that holds it."""
    folder = tmp_path_factory.mktemp("quickstart")
    for name in ("quickstart.yaml", "quickstart.lock"):
        shutil.copy(ROOT / "specs" / name, folder / name)
    done = subprocess.run([sys.executable, "-m", "provision", "apply", "quickstart.yaml", "--yes"], cwd=folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "first-run.txt").write_text(done.stdout + done.stderr)
    return folder


@pytest.fixture(scope="session")
def hf_python(request: pytest.FixtureRequest) -> str:
    """The interpreter of an environment with torch, transformers, accelerate and datasets: PROVISION_TEST_HF_PYTHON, or the quickstart's."""
    given = os.environ.get("PROVISION_TEST_HF_PYTHON")
    return given or str(request.getfixturevalue("quickstart") / ".provision/envs/quickstart.here/bin/python")


@pytest.fixture(scope="session")
def pythons() -> list[str]:
    """Interpreters that the probe and the installer promise to run on; says which ones are not here."""
    listed = [path for path in os.environ.get("PROVISION_TEST_PYTHONS", "").split(os.pathsep) if path]
    found = listed or [path for minor in range(10, 15) if (path := shutil.which(f"python3.{minor}"))]
    working = [path for path in found if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0]
    for path in sorted(set(found) - set(working)):
        print(f"skipped: {path} does not run")
    if not working:
        pytest.skip("no further Python was found; name them in PROVISION_TEST_PYTHONS")
    return working
