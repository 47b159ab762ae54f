"""The image and the tool that knows it, made once; a machine for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uv

from tests.colab_rig import catalogue, image
from tests.colab_rig.catalogue import Tool
from tests.colab_rig.machine import Machine, boot, end
from tests.colab_rig.rendered import Rendered
from tests.support import make_once

TRAINED = Path(__file__).with_name("trained.yaml")
LIGHT = """
apiVersion: provision/v1
name: light
gpu: none
python: "3.11"
packages: [numpy, tqdm, einops]
training: {framework: none}
targets:
  colab: {kind: colab, runtime: "2025.07"}
"""


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of the image without torch; read only."""
    try:
        return (
            make_once(
                tmp_path_factory, "colab-image", lambda folder: image.make(folder, uv.find_uv_bin())
            )
            / "usr"
        )
    except image.Missing as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def whole(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of the image with torch; read only."""
    try:
        return (
            make_once(
                tmp_path_factory,
                "colab-whole",
                lambda folder: image.with_torch(prefix, folder, uv.find_uv_bin()),
            )
            / "usr"
        )
    except image.Missing as why:
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of uv that all machines share."""
    return tmp_path_factory.mktemp("colab-uv")


@pytest.fixture
def booted(uv_cache: Path, tmp_path: Path) -> Iterator[Callable[[Path], Machine]]:
    """Boot a machine from a prefix; it is gone when the test is."""
    running: list[Machine] = []

    def another(prefix: Path) -> Machine:
        running.append(
            boot(prefix, tmp_path / f"machine-{len(running)}", uv_cache, uv.find_uv_bin())
        )
        return running[-1]

    yield another
    for machine in running:
        end(machine)


@pytest.fixture
def machine(prefix: Path, booted: Callable[[Path], Machine]) -> Machine:
    """A machine without torch."""
    return booted(prefix)


@pytest.fixture
def trainer(whole: Path, booted: Callable[[Path], Machine]) -> Machine:
    """A machine with torch."""
    return booted(whole)


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """The tool, whose facts know the stand-in as runtime 2025.07; read only."""
    return Tool(make_once(tmp_path_factory, "colab-tool", catalogue.lay_out))


@pytest.fixture(scope="session")
def render(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rendered]:
    """Lock a spec and render its one Colab target."""

    def rendered(text: str, name: str = "spec") -> Rendered:
        folder = tmp_path_factory.mktemp(name)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        for words in (("lock", f"{name}.yaml"), ("render", f"{name}.yaml")):
            done = tool.run(*words, cwd=folder)
            assert done.returncode == 0, done.stdout + done.stderr
        return Rendered(folder / f"{name}.colab.py", folder / f"{name}.ipynb")

    return rendered


@pytest.fixture(scope="session")
def light(render: Callable[..., Rendered]) -> Rendered:
    """Two packages that the image has and one that it has not, without torch and training: for
    tests of everything before the proof.
    """
    return render(LIGHT, "light")


@pytest.fixture(scope="session")
def trained(render: Callable[..., Rendered]) -> Rendered:
    """A training of torch, rendered."""
    return render(TRAINED.read_text(encoding="utf-8"), "colab-cpu")
