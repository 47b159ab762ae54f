"""A missing extra: the command that is printed adds it to this very copy, however it was installed,
and never asks an index for our name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path

import pytest
import uv

from provision.extras import DISTRIBUTION_NAME
from tests.packaging.conftest import Built, outside
from tests.rig import make_index, make_wheel
from tests.support import make_once

ASK = "from provision.extras import install_command as command; print(command('{extra}'))"
HAS = "from importlib.metadata import version; print(version('{name}'))"
BROUGHT = {"workbench": "google-auth", "conda": "py-rattler"}
"""A package that each extra brings."""


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An index with an empty wheel of everything that our wheel requires; there is none of our own
    name in it.
    """

    def make(folder: Path) -> None:
        wheels = [make_wheel(folder / "wheels", "six", "1.17")]
        for line in requires(DISTRIBUTION_NAME) or []:
            name, _, floor = line.partition(";")[0].strip().partition(">=")
            wheels.append(make_wheel(folder / "wheels", name, floor.strip()))
        make_index(folder / "index", tuple(wheels))

    return (make_once(tmp_path_factory, "small-index", make) / "index").as_uri()


class Copy:
    """A copy of provision in an environment, with variables under which only the small index is
    asked.
    """

    def __init__(self, prefix: Path, index: str) -> None:
        self.prefix, self.python = prefix, prefix / "bin/python"
        tools = {"UV_TOOL_DIR": str(prefix.parent), "UV_TOOL_BIN_DIR": str(prefix.parent / "bin")}
        path = f"{Path(uv.find_uv_bin()).parent}:{os.environ['PATH']}"
        index_only = {
            "UV_DEFAULT_INDEX": index,
            "PIP_INDEX_URL": index,
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "UV_PYTHON": sys.executable,
        }
        self.variables = {**outside(PATH=path), **index_only, **tools}

    def uv(self, *words: str) -> None:
        subprocess.run(
            [uv.find_uv_bin(), *words],
            env=self.variables,
            check=True,
            capture_output=True,
            timeout=600,
        )

    def run(self, code: str) -> str:
        return subprocess.run(
            [str(self.python), "-c", code],
            env=self.variables,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout.strip()

    def command(self, extra: str = "workbench") -> str:
        command = self.run(ASK.format(extra=extra))
        assert not re.search(
            rf"(?<!pipx inject ){DISTRIBUTION_NAME}(?!\[[a-z,]+\] @ )(\[|'|=|$| )", command
        ), f"an index could be asked for our name: {command}"
        return command

    def add(self, extra: str) -> None:
        """Carry out the command that is printed, in a shell, from a folder of its own."""
        assert self.run(HAS.format(name="pydantic"))
        done = subprocess.run(
            ["sh", "-c", self.command(extra)],
            cwd=self.prefix,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        assert self.run(HAS.format(name=BROUGHT[extra]))


@pytest.fixture
def wheel(built: Built, tmp_path: Path) -> Path:
    """The wheel in a folder whose name has to be quoted."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    return Path(shutil.copy(built.wheel, folder))


@pytest.fixture
def made(tmp_path: Path, small: str) -> Callable[..., Copy]:
    """Makes an environment without pip, and installs into it by `uv pip`."""

    def make(*words: str) -> Copy:
        copy = Copy(tmp_path / "env", small)
        copy.uv("venv", "--quiet", str(copy.prefix))
        copy.uv("pip", "install", "--quiet", "--python", str(copy.python), *words)
        return copy

    return make


def test_a_wheel_that_uv_installed_without_pip_and_that_is_gone_later(
    made: Callable[..., Copy], wheel: Path
) -> None:
    copy = made(str(wheel))
    assert copy.command().startswith(
        f"uv pip install --python {copy.python} 'provision-ml[workbench] @ file:///"
    )
    copy.add("workbench")
    wheel.unlink()
    assert copy.command("conda") == f"uv pip install --python {copy.python} 'py-rattler>=0.28'"


def test_a_copy_from_an_index_gets_the_packages_of_the_extra(
    made: Callable[..., Copy], wheel: Path
) -> None:
    copy = made("--find-links", str(wheel.parent), DISTRIBUTION_NAME)
    assert copy.command().endswith(
        "'google-auth>=2.38' 'google-cloud-notebooks>=1.18' 'requests>=2.32'"
    )
    copy.add("workbench")


def test_a_tool_of_uv_keeps_what_it_has(tmp_path: Path, small: str, wheel: Path) -> None:
    copy = Copy(tmp_path / "tools" / DISTRIBUTION_NAME, small)
    copy.uv(
        "tool",
        "install",
        "--quiet",
        f"{DISTRIBUTION_NAME}[conda] @ {wheel.as_uri()}",
        "--with",
        "six>=1",
    )
    command = copy.command("workbench")
    assert command.startswith("uv tool install 'provision-ml[conda,workbench] @ file:///")
    assert command.endswith("--with 'six>=1'")
    copy.add("workbench")
    for name in ("py-rattler", "six"):
        assert copy.run(HAS.format(name=name))


def test_a_copy_that_uvx_runs(tmp_path: Path, small: str, wheel: Path) -> None:
    copy = Copy(tmp_path / "none", small)
    words = [
        uv.find_uv_bin(),
        "tool",
        "run",
        "--from",
        str(wheel),
        "python",
        "-c",
        ASK.format(extra="workbench"),
    ]
    done = subprocess.run(words, env=copy.variables, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("uvx --from 'provision-ml[workbench] @ file:///"), done.stderr
    again = (
        done.stdout.strip().removesuffix("provision")
        + f'python -c "{HAS.format(name="google-auth")}"'
    )
    found = subprocess.run(
        ["sh", "-c", again], env=copy.variables, capture_output=True, text=True, timeout=600
    )
    assert found.returncode == 0, found.stderr


@pytest.fixture
def by_pip(tmp_path: Path, small: str) -> Callable[..., Copy]:
    """Makes an environment with pip, and installs into it by that."""

    def make(*words: str) -> Copy:
        copy = Copy(tmp_path / "env", small)
        subprocess.run([sys.executable, "-m", "venv", str(copy.prefix)], check=True, timeout=600)
        copy.variables = {
            **copy.variables,
            **{
                name: os.environ[name]
                for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
                if name in os.environ
            },
        }
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
            if name not in os.environ:
                copy.variables.pop(name, None)
        subprocess.run(
            [str(copy.python), "-m", "pip", "install", "--quiet", *words],
            env=copy.variables,
            check=True,
            timeout=900,
        )
        return copy

    return make


@pytest.mark.long
@pytest.mark.network
@pytest.mark.parametrize("editable", [False, True])
def test_a_checkout_that_pip_installed(
    by_pip: Callable[..., Copy], built: Built, tmp_path: Path, editable: bool
) -> None:
    tree = Path(shutil.copytree(built.tree, tmp_path / "my tree"))
    option = ["--editable"] if editable else []
    copy = by_pip(*option, str(tree))
    assert (
        copy.command()
        == f"{copy.python} -m pip install {'--editable ' if editable else ''}'{tree}[workbench]'"
    )
    copy.add("workbench")


@pytest.mark.long
@pytest.mark.network
def test_a_wheel_and_a_repository_that_pip_installed(
    by_pip: Callable[..., Copy], built: Built, wheel: Path, tmp_path: Path
) -> None:
    copy = by_pip(str(wheel))
    assert copy.command().startswith(
        f"{copy.python} -m pip install 'provision-ml[workbench] @ file:///"
    )
    copy.add("workbench")
    tree = Path(shutil.copytree(built.tree, tmp_path / "tree"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=tree, check=True, timeout=600)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout.strip()
    subprocess.run(
        [str(copy.python), "-m", "pip", "uninstall", "-qy", DISTRIBUTION_NAME, "google-auth"],
        env=copy.variables,
        check=True,
        timeout=600,
    )
    subprocess.run(
        [str(copy.python), "-m", "pip", "install", "-q", f"git+{tree.as_uri()}"],
        env=copy.variables,
        check=True,
        timeout=900,
    )
    assert (
        copy.command() == f"{copy.python} -m pip install 'provision-ml[workbench] @ "
        f"git+file://localhost{tree}@{commit}'"
    )
    copy.add("workbench")


@pytest.mark.long
@pytest.mark.network
def test_an_application_of_pipx(by_pip: Callable[..., Copy], wheel: Path, tmp_path: Path) -> None:
    host = by_pip("pipx")
    app = Copy(tmp_path / "pipx" / "venvs" / DISTRIBUTION_NAME, "")
    folders = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "pipx-bin")}
    app.variables = {
        **host.variables,
        **folders,
        "PATH": f"{host.prefix}/bin:{host.variables['PATH']}",
    }
    subprocess.run(
        [str(host.python), "-m", "pipx", "install", "--quiet", str(wheel)],
        env=app.variables,
        check=True,
        timeout=900,
    )
    assert app.command().startswith("pipx install --force 'provision-ml[workbench] @ file:///")
    app.add("workbench")
    wheel.unlink()
    assert app.command("conda") == f"pipx inject {DISTRIBUTION_NAME} 'py-rattler>=0.28'"
