"""Remakes the tables of torch releases and their machine code from the wheels of the default index.

torch.yaml: the Pythons with a wheel on each platform and the glibc floor (file names), `python` and
the pins (METADATA), the default flavours (torch/version.py), and the torchvision and torchaudio
releases for a release (their METADATA). builds.yaml: the targets of the index's own builds (the
compiler flags in ATen/cuda/CUDAConfig.h), and from 2.13 on the release's list of the other flavours
(torch/cuda/__init__.py). Each is a small member that is read by HTTP range and cached in
.cache/remake.

Not touched, as the default index lacks them: `builds` beyond the default
flavour, rows of builds.yaml about other flavours before 2.13, `released` without a day in the
index, and the glibc floor of wheels tagged manylinux1, which is lower than that of their code.
Releases before the oldest one in the table are not added. A new row names the default flavour only:
add the others by hand, from PyTorch's own build matrix.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from remaking.index import File
from remaking.running import Remade, ask, options, rows_of
from remaking.sheets import Row
from remaking.wheels import Shelf, Wheel, bound, each, python_of, requirements

MACHINES = {"linux-x86_64": "x86_64", "linux-aarch64": "aarch64"}
PLATFORMS = {
    "pythons_aarch64": r".*linux.*_aarch64",
    "pythons_windows": r"win_amd64",
    "pythons_macos": r"macosx_.*_(arm64|universal2)",
    "pythons_macos_x86_64": r"macosx_.*_(x86_64|universal2)",
}
"""Column of the Pythons with a wheel on each platform besides Linux x86_64, and its tags."""
PINS = {
    "cudnn": r"nvidia-cudnn-cu\d+",
    "nccl": r"nvidia-nccl-cu\d+",
    "cuda_runtime": r"nvidia-cuda-runtime-cu\d+|cuda-toolkit",
}
OPTIONAL = (*PLATFORMS, "glibc_aarch64", "default_aarch64")
"""Columns that a row has only if the platform differs from Linux x86_64, or aarch64 has CUDA."""
COMPANIONS = ("torchvision", "torchaudio")


def read(shelf: Shelf, known: Iterable[Row], newest: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of torch.yaml as the wheels have them, without the companions; only the
    `newest` are read where a number is given.
    """
    rows = {row["release"]: dict(row) for row in known}
    anew = each(
        lambda item: _release(*item, shelf, rows.get(str(item[0]), {})),
        _wanted(shelf, rows, newest),
    )
    return sorted(
        {**rows, **{row["release"]: row for row in anew}}.values(),
        key=lambda row: Version(row["release"]),
    )


def companions(
    shelf: Shelf, rows: Iterable[Row], newest: int | None = None
) -> list[dict[str, Any]]:
    """Return the rows of torch.yaml with the torchvision and torchaudio releases whose Linux x86_64
    wheels name each torch release.

    Companions of torch releases before the first row are left out, and all before them:
    `torch>=1.1.0` of long ago was no promise.
    """
    found = [dict(row) for row in rows]
    wanted = found[-newest:] if newest else found
    for name in COMPANIONS:
        fitting = [
            (str(version), wheels[0])
            for version, files in shelf.releases(name).items()
            if (wheels := _for(files, "linux-x86_64"))
        ]
        made = each(
            lambda item: (item[0], _torch_of(shelf.wheel(item[1]))),
            fitting[-3 * newest :] if newest else fitting,
        )
        before = [
            place
            for place, (_, asked) in enumerate(made)
            if (only := _exact(asked)) and Version(only) < Version(wanted[0]["release"])
        ]
        for row in wanted:
            row[name] = [
                version
                for version, asked in made[max(before, default=-1) + 1 :]
                if asked and asked.contains(row["release"])
            ]
    return found


def code(
    shelf: Shelf, known: Iterable[Row], named: Iterable[Row], newest: int | None = None
) -> list[dict[str, Any]]:
    """Return the rows of builds.yaml as the wheels have them; `named` are the rows of torch.yaml."""  # noqa: E501
    builds = {row["release"]: row["builds"] for row in named}
    rows = {(row["release"], row["flavour"], row["platform"]): dict(row) for row in known}
    wanted = [
        (str(version), files, platform)
        for version, files in _wanted(shelf, builds, newest)
        for platform in MACHINES
    ]
    for (release, _, platform), found in zip(
        wanted, each(lambda item: _compiled(shelf, item[1], item[2]), wanted), strict=True
    ):
        for flavour, columns in found.items():
            if flavour in builds.get(release, ()):
                key = (release, flavour, platform)
                rows[key] = {
                    **rows.get(
                        key, dict(zip(("release", "flavour", "platform"), key, strict=True))
                    ),
                    **columns,
                }
                rows[key] = {column: value for column, value in rows[key].items() if value}
    return list(rows.values())


def _wanted(
    shelf: Shelf, known: Iterable[str], newest: int | None
) -> list[tuple[Version, list[File]]]:
    oldest = min(map(Version, known))
    found = [
        (version, files) for version, files in shelf.releases("torch").items() if version >= oldest
    ]
    return found[-newest:] if newest else found


def _release(version: Version, files: list[File], shelf: Shelf, known: Row) -> dict[str, Any]:
    x86, arm = (_for(files, platform) for platform in MACHINES)
    wheel, armed = shelf.wheel(x86[0]), shelf.wheel(arm[0]) if arm else None
    flavour = flavour_of(wheel.text("torch/version.py"))
    read = {
        "release": str(version),
        "released": min(file.uploaded for file in files) or known.get("released", ""),
        "default": flavour,
        "default_aarch64": flavour_of(armed.text("torch/version.py")) if armed else "cpu",
        "builds": known.get("builds", {flavour: "high"}),
        "python": python_of(wheel.metadata()),
        "pythons": pythons(x86),
        **{column: pythons_with(files, pattern) for column, pattern in PLATFORMS.items()},
        "glibc": glibc(x86) or known.get("glibc", ""),
        "glibc_aarch64": glibc(arm) or known.get("glibc_aarch64", ""),
        **pins(wheel),
    }
    plain = {
        **dict.fromkeys(PLATFORMS, read["pythons"]),
        "glibc_aarch64": read["glibc"] if arm else "",
        "default_aarch64": "cpu",
    }
    kept = {
        name: value for name, value in read.items() if name not in OPTIONAL or value != plain[name]
    }
    return {**{name: value for name, value in known.items() if name not in OPTIONAL}, **kept}


def pythons_with(files: Iterable[File], pattern: str) -> list[str]:
    """Return the Pythons that have a wheel with a platform tag of a pattern, oldest first."""
    return pythons(
        file
        for file in files
        if any(
            re.fullmatch(pattern, tag.platform) and not tag.abi.endswith("t") for tag in file.tags
        )
    )


def _for(files: Iterable[File], platform: str) -> list[File]:
    """Return the wheels for a platform and the usual interpreter, the one of the newest Python
    last.
    """
    return sorted(
        (file for file in files if any(_fits(tag, platform) for tag in file.tags)),
        key=lambda file: (_pythons(file), file.name),
    )


def _fits(tag: Any, platform: str) -> bool:
    return (
        "linux" in tag.platform
        and tag.platform.endswith(MACHINES[platform])
        and not tag.abi.endswith("t")
    )


def _pythons(file: File) -> list[tuple[int, int]]:
    return sorted(
        (int(tag.interpreter[2]), int(tag.interpreter[3:]))
        for tag in file.tags
        if re.fullmatch(r"cp3\d+", tag.interpreter)
    )


def pythons(files: Iterable[File]) -> list[str]:
    """Return the Pythons that files are for, oldest first."""
    return [
        f"{major}.{minor}"
        for major, minor in sorted({python for file in files for python in _pythons(file)})
    ]


def glibc(files: Iterable[File]) -> str:
    """Return the C library that file names ask for; "" for manylinux1 and manylinux2010, whose
    torch wheels need more than they say.
    """
    platforms = {tag.platform for file in files for tag in file.tags}
    asked = {(2, 17) for platform in platforms if platform.startswith("manylinux2014_")}
    asked |= {
        (int(found[1]), int(found[2]))
        for platform in platforms
        if (found := re.match(r"manylinux_(\d+)_(\d+)_", platform))
    }
    return ".".join(str(part) for part in max(asked)) if asked else ""


def flavour_of(source: str) -> str:
    """Return the flavour that torch/version.py writes: "cu130", or "cpu"."""
    found = re.search(r"^cuda\b[^=]*= '(\d+)\.(\d+)'", source, re.MULTILINE)
    return f"cu{found[1]}{found[2]}" if found else "cpu"


def pins(wheel: Wheel) -> dict[str, str]:
    """Return triton and the CUDA parts that a wheel pins, "" for what it does not."""
    asked = {
        requirement.name: bound(requirement.specifier)
        for requirement in requirements(wheel.metadata())
    }
    found = {
        column: next((asked[name] for name in asked if re.fullmatch(pattern, name)), "")
        for column, pattern in {"triton": "triton", **PINS}.items()
    }
    return {column: text.removeprefix("==") for column, text in found.items()}


def _compiled(shelf: Shelf, files: list[File], platform: str) -> dict[str, dict[str, str]]:
    """Return what builds of a release were compiled for, by flavour: the index's own, and those
    that the release itself lists.
    """
    fitting = _for(files, platform)
    if not fitting:
        return {}
    wheel = shelf.wheel(fitting[0])
    own = flavour_of(wheel.text("torch/version.py"))
    listed = others(wheel.text("torch/cuda/__init__.py"), MACHINES[platform])
    flags = targets(wheel.text("ATen/cuda/CUDAConfig.h"))
    return {
        **{flavour: {"sm": sm} for flavour, sm in listed.items() if flavour != own},
        **({own: flags} if flags["sm"] else {}),
    }


def targets(header: str) -> dict[str, str]:
    """Return `sm` and `ptx` ("" for none) of the compiler flags in CUDAConfig.h."""
    found = re.search(r'NVCC_FLAGS_EXTRA "([^"]*)"', header)
    codes = (
        re.findall(r"\b(sm|compute)_(\d+)", " ".join(re.findall(r"code=([^;]+)", found[1])))
        if found
        else []
    )
    by_kind = {
        kind: sorted({capability(number) for known, number in codes if known == kind}, key=Version)
        for kind in ("sm", "compute")
    }
    return {"sm": " ".join(by_kind["sm"]), "ptx": " ".join(by_kind["compute"])}


def others(source: str, machine: str) -> dict[str, str]:
    """Return the code of every published build that torch/cuda/__init__.py lists for a machine, by
    flavour; {} where it does not tell machines apart.
    """
    for line in ast.walk(ast.parse(source)):
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and line.target.id == "PYTORCH_RELEASES_CODE_CC"
            and line.value
        ):
            listed = ast.literal_eval(line.value)
            told = {
                cuda: by[machine]
                for cuda, by in listed.items()
                if isinstance(by, dict) and machine in by
            }
            return {
                "cu" + cuda.replace(".", ""): " ".join(
                    capability(str(number)) for number in sorted(codes)
                )
                for cuda, codes in told.items()
            }
    return {}


def capability(number: str) -> str:
    """Return "90" as "9.0" and "120" as "12.0"."""
    return f"{number[:-1]}.{number[-1]}"


def _torch_of(wheel: Wheel) -> SpecifierSet | None:
    """Return which torch a companion names, None when it names no version."""
    asked = [
        requirement.specifier
        for requirement in requirements(wheel.metadata())
        if requirement.name == "torch"
    ]
    return asked[0] if asked and asked[0] else None


def _exact(asked: SpecifierSet | None) -> str:
    """Return the one release that a companion is made for, "" when it takes several."""
    return next((clause.version for clause in asked or () if clause.operator == "=="), "")


def remade(
    shelf: Shelf, known: list[Row], compiled: list[Row], newest: int | None = None
) -> Iterator[Remade]:
    """Yield both tables as read, or with only the `newest` releases read."""
    rows, last = companions(shelf, read(shelf, known, newest), newest), shelf.newest("torch")
    yield Remade(
        "torch", "rows", ("release",), tuple(rows), ({"release": last},), whole=newest is None
    )
    default = next(row["default"] for row in rows if row["release"] == last)
    of_last = (
        ()
        if default == "cpu"
        else ({"release": last, "flavour": default, "platform": "linux-x86_64"},)
    )
    yield Remade(
        "builds",
        "rows",
        ("release", "flavour", "platform"),
        tuple(code(shelf, compiled, rows, newest)),
        of_last,
        whole=False,
    )


def main(arguments: list[str]) -> int:
    """Run the script."""
    chosen = options(arguments, __doc__ or "", newest=True)
    known, compiled = rows_of(chosen.tables, "torch"), rows_of(chosen.tables, "builds")
    return ask(chosen, lambda shelf: remade(shelf, known, compiled, chosen.newest))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
