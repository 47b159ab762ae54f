"""A stand-in for a person's own conda: it makes what an explicit list names, tells its folders of
environments, and writes down what it was asked.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

_PROGRAM = """#!{python}
import asyncio, json, os, pathlib, sys, tempfile
from urllib.parse import unquote, urlsplit
import rattler
from rattler.package_streaming import extract

words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join(words[:2]) + "\\n")
if words == ["info", "--json"]:
    print(json.dumps({{{key!r}: {folders!r}}}))
    sys.exit()
records = []
for line in pathlib.Path(words[words.index("--file") + 1]).read_text().splitlines()[1:]:
    url = line.partition("#")[0]
    with open({log!r}, "a") as log:
        log.write(url + "\\n")
    subdir, _, name = url.rpartition("/")
    with tempfile.TemporaryDirectory() as folder:
        extract(unquote(urlsplit(url).path), folder)
        record = rattler.PackageRecord.from_index_json(folder + "/info/index.json")
    records.append(rattler.RepoDataRecord(record, name, url, subdir.rpartition("/")[0] + "/"))
prefix = pathlib.Path(words[words.index("--prefix") + 1])
asyncio.run(rattler.install(records, prefix, cache_dir={cache!r}, show_progress=False))
(prefix / "conda-meta/history").write_text("made by the stand-in\\n")
os._exit(0)  # py-rattler's threads are not waited for: on a busy machine their end has taken the program's exit code with it
"""  # noqa: E501


def own_conda(
    folder: Path, envs: Sequence[Path], *, name: str = "conda", key: str = "envs_dirs"
) -> Path:
    """Write such a program, whose folders of environments are `envs`; what it is asked stands in
    asked.txt beside it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "log": str(folder / "asked.txt"),
        "cache": str(folder / "cache"),
        "folders": [str(one) for one in envs],
    }
    path = folder / name
    path.write_text(_PROGRAM.format(python=sys.executable, key=key, **told))
    path.chmod(0o755)
    return path


def found_by_name(name: str, envs: Sequence[Path]) -> Path | None:
    """Return what conda, mamba and micromamba take for an environment of this name: the first
    folder of theirs with a folder of it, links followed.

    Source: locate_prefix_by_name of conda 26.7, and compute_prefix_from_name of mamba 2.
    """
    return next((folder / name for folder in envs if (folder / name).is_dir()), None)


def is_environment(prefix: Path) -> bool:
    """Tell what conda lists by name from other folders. Source: PrefixData.is_environment of conda
    26.7.
    """
    return (prefix / "conda-meta/history").is_file()
