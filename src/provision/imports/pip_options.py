"""The options of `pip install` and `uv pip install`, and what each means for a spec."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class OptionMeaning(Enum):
    """The meaning of an option for a spec."""

    NONE = "changes nothing that a spec describes"
    REQUIREMENTS = "a file with requirements"
    CONSTRAINTS = "a file with constraints"
    EDITABLE = "a project"
    INDEX = "the main index"
    EXTRA_INDEX = "one more index"
    FIND_LINKS = "a page or folder with files"
    TORCH_BACKEND = "the build of torch"
    HASH = "the hash of a file"
    LEFT = "something that a spec cannot contain"


class PipOption(NamedTuple):
    """An option: whether a value follows, and for leftovers the reason and the help."""

    meaning: OptionMeaning
    takes_value: bool = False
    text: tuple[str, ...] = ()


_FLAGS = """
--all-extras --break-system-packages --compile --compile-bytecode --disable-pip-version-check
--exact --force-reinstall --ignore-installed --isolated --native-tls --no-cache --no-cache-dir
--no-clean --no-color --no-compile --no-input --no-progress --no-python-version-warning
--no-warn-conflicts --no-warn-script-location --offline --prefer-binary --quiet --reinstall
--require-hashes --require-virtualenv --strict --system --upgrade --use-pep517 --user --verbose
--yes -I -U -n -q -v -y --debug --no-verify-hashes --verify-hashes --dry-run --no-sources
--check-build-dependencies --no-build --only-deps
"""
_VALUES = """
--cache-dir --color --default-timeout --exists-action --exclude-newer --index-strategy
--keyring-provider --link-mode --log --only-binary --progress-bar --python --refresh-package
--reinstall-package --report --resolution --retries --root-user-action --src --timeout
--upgrade-package --upgrade-strategy --use-deprecated --use-feature -P --resume-retries
"""
_BUILD = (
    "packages are built from source only if the spec allows it",
    "set `build: true` on the package",
)
_ON_DEVICE = ("a target has its own environment folder", "no change is needed")
_PLATFORM = (
    "the spec determines the Python version and the platform",
    "set `python`, `platforms` and `targets` in the spec",
)
_SECRET = ("a spec must not contain secrets", "set the option in uv's configuration on the machine")
_LEFT_FLAGS: dict[str, tuple[str, ...]] = {
    "--no-deps": (
        "a lock contains everything that the packages depend on",
        "review the versions that `provision lock` chooses",
    ),
    "--no-dependencies": (
        "a lock contains everything that the packages depend on",
        "review the versions that `provision lock` chooses",
    ),
    "--no-index": (
        "packages can only come from indexes",
        "add the index that has your files to `indexes`",
    ),
    "--pre": (
        "pre-releases are used only if the version specifier names one",
        "name a pre-release in the version specifier, as in torch>=2.12.0rc1",
    ),
    "--no-build-isolation": _BUILD,
}
_LEFT_VALUES: dict[str, tuple[str, ...]] = {
    "--no-binary": _BUILD,
    "--no-binary-package": _BUILD,
    "--no-build-isolation-package": _BUILD,
    "--prerelease": (
        "pre-releases are used only if the version specifier names one",
        "name a pre-release in the version specifier, as in torch>=2.12.0rc1",
    ),
    "--config-settings": _BUILD,
    "--config-setting": _BUILD,
    "--global-option": _BUILD,
    "--build-option": _BUILD,
    "--install-option": _BUILD,
    "--target": _ON_DEVICE,
    "--prefix": _ON_DEVICE,
    "--root": _ON_DEVICE,
    "--platform": _PLATFORM,
    "--python-version": _PLATFORM,
    "--python-platform": _PLATFORM,
    "--implementation": _PLATFORM,
    "--abi": _PLATFORM,
    "--trusted-host": (
        "certificates are always checked",
        "install a certificate that the machine trusts on the host",
    ),
    "--proxy": _SECRET,
    "--cert": _SECRET,
    "--client-cert": _SECRET,
    "--extra": ("it names an extra from another file", "import that file"),
    "--group": ("it names a group from another file", "import that file"),
    "--only-group": ("it names a group from another file", "import that file"),
    "--overrides": ("a spec has no overrides", "add the versions to `packages`"),
    "--override": ("a spec has no overrides", "add the versions to `packages`"),
}
_SHORT = {
    "-r": "--requirement",
    "-c": "--constraint",
    "-e": "--editable",
    "-i": "--index-url",
    "-f": "--find-links",
    "-t": "--target",
    "-C": "--config-settings",
    "-p": "--python",
}
_ACTIVE = {
    "--requirement": OptionMeaning.REQUIREMENTS,
    "--requirements": OptionMeaning.REQUIREMENTS,
    "--constraint": OptionMeaning.CONSTRAINTS,
    "--constraints": OptionMeaning.CONSTRAINTS,
    "--editable": OptionMeaning.EDITABLE,
    "--index-url": OptionMeaning.INDEX,
    "--pypi-url": OptionMeaning.INDEX,
    "--default-index": OptionMeaning.INDEX,
    "--extra-index-url": OptionMeaning.EXTRA_INDEX,
    "--index": OptionMeaning.EXTRA_INDEX,
    "--torch-backend": OptionMeaning.TORCH_BACKEND,
    "--hash": OptionMeaning.HASH,
}


def _list_options() -> Iterator[tuple[str, PipOption]]:
    for name in _FLAGS.split():
        yield name, PipOption(OptionMeaning.NONE)
    for name in _VALUES.split():
        yield name, PipOption(OptionMeaning.NONE, takes_value=True)
    for name, text in _LEFT_FLAGS.items():
        yield name, PipOption(OptionMeaning.LEFT, text=text)
    for name, text in _LEFT_VALUES.items():
        yield name, PipOption(OptionMeaning.LEFT, takes_value=True, text=text)
    for name, meaning in _ACTIVE.items():
        yield name, PipOption(meaning, takes_value=True)
    links = (
        "a spec supports indexes, but not pages or folders with files",
        "add an index to `indexes`",
    )
    yield "--find-links", PipOption(OptionMeaning.FIND_LINKS, takes_value=True, text=links)


OPTIONS: dict[str, PipOption] = dict(_list_options())
"""The options by name. Source: the help of pip 25 and of uv 0.9."""
OPTIONS.update({short: OPTIONS[name] for short, name in _SHORT.items()})
