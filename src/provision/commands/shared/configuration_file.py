"""Reads the configuration of a project: provision.toml, or [tool.provision] in pyproject.toml."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from provision.commands.shared.configuration import (
    NO_CONFIGURATION,
    NO_POLICY,
    RULE,
    RULE_OR_AREA,
    Configuration,
    FactsPin,
    FileIgnores,
    check_rule,
)
from provision.diagnostics import Severity
from provision.errors import ExternalError, SourceError, UsageError
from provision.rules.policy import Policy
from provision.sanitize import escape_line, redact
from provision.spec import Spec
from provision.spelling import did_you_mean

if TYPE_CHECKING:
    from provision.effects.system import Reader
    from provision.imports.toml_text import TomlText

FILE_NAME, PROJECT_FILE_NAME = "provision.toml", "pyproject.toml"
MAX_BYTES = 1 << 20
"""Bytes of a configuration file (our choice)."""
_TABLE = "tool.provision"
_WHY_DATA = "the configuration contains only data and cannot load code"


def find_configuration(path: Path, reader: Reader) -> Configuration:
    """Return the configuration of the nearest folder above a spec that has one.

    The search ends at the root of a repository. Files are not merged, and the file of `path` need
    not exist.

    Raises:
        UsageError: the file is not valid, or requires another version of provision.
    """
    folder = path.parent.absolute()
    for candidate in (folder, *folder.parents):
        found = _read(candidate, reader)
        if found is not None:
            return _parse(*found, candidate)
        if reader.exists(candidate / ".git"):
            break
    return NO_CONFIGURATION


def read_policy(path: Path, reader: Reader, name: str) -> Policy:
    """Return the policy of a configuration file, or of the file in a folder.

    Args:
        path: the file, or a folder with one.
        reader: reads it, perhaps from another revision.
        name: the display name of what `path` is, such as "origin/main".

    Raises:
        UsageError: there is no such file, or it is not valid.
    """
    is_file = not path.is_dir()
    found = _read_file(path, reader) if is_file else _read(path, reader)
    policy = _parse(*found, path).policy if found else NO_POLICY
    if policy == NO_POLICY:
        return policy
    return replace(policy, name=name if is_file else f"{name}:{Path(policy.name).name}")


def _read(folder: Path, reader: Reader) -> tuple[Path, str] | None:
    """Return the path and the text of the configuration file of a folder, if there is one."""
    for name in (FILE_NAME, PROJECT_FILE_NAME):
        if reader.exists(folder / name) and (found := _read_file(folder / name, reader)):
            return found
    return None


def _read_file(path: Path, reader: Reader) -> tuple[Path, str] | None:
    """Return the path and the text of a file; None for a pyproject.toml without our table."""
    try:
        text = reader.read(path, MAX_BYTES).decode()
    except (ExternalError, UnicodeDecodeError) as error:
        why = error.why if isinstance(error, ExternalError) else "it is not UTF-8"
        raise UsageError(f"{path} cannot be read", why=why) from error
    if path.name == PROJECT_FILE_NAME and (
        _TABLE not in text or not _load(path, text).table(*_TABLE.split("."))
    ):
        return None
    return path, text


# All specs of a project have the same file.
@lru_cache(maxsize=16)
def _load(path: Path, text: str) -> TomlText:
    from provision.imports.toml_text import TomlText  # most projects have no configuration

    try:
        return TomlText(path, text)
    except SourceError as error:
        raise UsageError(error.what, why=error.why, hint=error.hint) from error


@lru_cache(maxsize=16)
def _parse(path: Path, text: str, folder: Path) -> Configuration:
    names = tuple(_TABLE.split(".")) if path.name == PROJECT_FILE_NAME else ()
    return _Parser(_load(path, text), names).parse(folder)


class _Parser:
    """Reads the values of a configuration, with the position of each mistake."""

    def __init__(self, text: TomlText, root: tuple[str, ...]) -> None:
        self.text, self.root = text, root

    def parse(self, folder: Path) -> Configuration:
        """Return the configuration.

        Raises:
            UsageError: a key or a value is not valid.
        """
        self._check_keys((), ("required-version", "lint", "policy", "facts"))
        self._check_version()
        keys = ("select", "ignore", "fail-on", "severity", "per-file-ignores")
        self._check_keys(("lint",), keys)
        lint = self._table("lint")
        ignore = self._rules(("lint",), "ignore", lint.get("ignore", []))
        severities = {}
        for rule, value in self._table("lint", "severity").items():
            names = ("lint", "severity")
            self._rules(names, rule, [rule], pattern=RULE)
            severities[rule] = self._severity(names, rule, value)
        file_ignores = tuple(
            FileIgnores(pattern, self._rules(("lint", "per-file-ignores"), pattern, value))
            for pattern, value in self._table("lint", "per-file-ignores").items()
        )
        self._refuse_not_ignorable(("lint",), "ignore", ignore)
        for item in file_ignores:
            self._refuse_not_ignorable(("lint", "per-file-ignores"), item.pattern, item.rules)
        for rule in severities:
            self._refuse_not_ignorable(("lint", "severity"), rule, (rule,))
        policy = self._parse_policy() if self._table("policy") else NO_POLICY
        accepted = (*ignore, *severities, *(rule for item in file_ignores for rule in item.rules))
        for rule in accepted:
            if any(rule.startswith(area) or area.startswith(rule) for area in policy.never_ignore):
                what = f"[lint] ignores {rule} or lowers its severity, but `never-ignore` lists it"
                self._refuse(("policy",), "never-ignore", what, hint="remove one of them")
        return Configuration(
            folder,
            self.text.file.name,
            self._rules(("lint",), "select", lint.get("select", [])),
            ignore,
            severities,
            file_ignores,
            self._severity(("lint",), "fail-on", lint.get("fail-on", Severity.ERROR.value)),
            policy,
            self._parse_facts(folder) if self._table("facts") else None,
        )

    def _parse_facts(self, folder: Path) -> FactsPin:
        names = ("facts",)
        table = self._table(*names)
        self._check_keys(names, ("sha256", "file", "index", "name"))
        for key, value in table.items():
            if not isinstance(value, str) or not value:
                self._refuse(names, key, "expected a string")
        if not re.fullmatch(r"[0-9a-f]{64}", table.get("sha256", "")):
            key = "sha256" if "sha256" in table else next(iter(table))
            hint = "sha256sum FILE prints it"
            self._refuse(names, key, "expected sha256, the archive's hash of 64 digits", hint=hint)
        if table.keys() - {"sha256"} not in ({"file"}, {"index", "name"}):
            self._refuse(names, "sha256", "expected either `file`, or `index` and `name`")
        index = table.get("index", "")
        address = urlsplit(index)
        if index and (address.scheme not in ("https", "http", "file") or address.username):
            what = "expected the address of an index without user name and password"
            self._refuse(names, "index", what, hint="credentials are read from ~/.netrc")
        if index and not re.fullmatch(r"\w([\w.-]*\w)?", table["name"], re.ASCII):
            self._refuse(names, "name", "expected the name of a package")
        file = folder / table["file"] if "file" in table else None
        start = self.text.key((*self.root, *names), "sha256").start
        position = f"{self.text.file.name}:{start.line}:{start.column}"
        return FactsPin(table["sha256"], position, file, index, table.get("name", ""))

    def _parse_policy(self) -> Policy:
        keys = ("gpus", "regions", "machine-families", "max-hourly-cost")
        self._check_keys(("policy",), (*keys, "required-fields", "never-ignore"))
        table = self._table("policy")
        cost = table.get("max-hourly-cost")
        if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float)):
            self._refuse(
                ("policy",), "max-hourly-cost", "expected an amount in US dollars, such as 2.5"
            )
        if cost is not None and not 0 < cost < math.inf:
            self._refuse(("policy",), "max-hourly-cost", f"{cost} allows no machine")
        fields = self._texts("required-fields") or ()
        policy = Policy(
            self.text.file.name,
            {key: self.text.key((*self.root, "policy"), key).start.line for key in table},
            self._texts("gpus"),
            self._texts("regions"),
            self._texts("machine-families"),
            None if cost is None else float(cost),
            tuple(tuple(name.split(".")) for name in fields),
            self._rules(("policy",), "never-ignore", table.get("never-ignore", [])),
        )
        self._check_policy(policy)
        return policy

    def _texts(self, key: str) -> tuple[str, ...] | None:
        value = self._table("policy").get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(("policy",), key, "expected a list of strings")
        return tuple(value)

    def _check_policy(self, policy: Policy) -> None:
        """Refuse names that do not exist, and limits that no spec can meet together."""
        from provision.facts import load_facts
        from provision.facts.machines import cheapest_offer, find_machines, list_offers

        facts, limit = load_facts(), policy.max_hourly_cost
        cards = {card.name: card for card in facts.cards}
        families = {machine.family for machine in facts.machines.values()}
        for family in policy.machine_families or ():
            if family not in families:
                hint = did_you_mean(family, families)
                what = f"there is no machine family {family}"
                self._refuse(("policy",), "machine-families", what, hint=hint)
        for field in policy.required_fields:
            if field[0] not in Spec.model_fields:
                what = f"specs have no field {field[0]}"
                self._refuse(("policy",), "required-fields", what)
        for name in policy.gpus or ():
            card = cards.get(name)
            if card is None:
                what = f"there is no GPU {name}"
                self._refuse(("policy",), "gpus", what, hint=did_you_mean(name, cards))
            machines = find_machines(facts, card, 1, reserved=True)
            allowed = [
                machine
                for machine in machines
                if policy.machine_families is None or machine.family in policy.machine_families
            ]
            if machines and not allowed:
                what = f"no machine in these families has the GPU {name}, which `gpus` allows"
                self._refuse(
                    ("policy",), "machine-families", what, hint="change one of the two settings"
                )
            offer = cheapest_offer(list_offers(allowed, card, 1))
            if limit is not None and offer is not None and offer.dollars > limit:
                what = f"no machine with the GPU {name}, which `gpus` allows, costs so little"
                hint = (
                    f"the cheapest machine costs ${offer.dollars:.2f} per hour; change one of "
                    "the two settings"
                )
                self._refuse(("policy",), "max-hourly-cost", what, hint=hint)

    def _table(self, *names: str) -> Mapping[str, Any]:
        value: Any = self.text.table(*self.root)
        for depth, name in enumerate(names):
            value = value.get(name, {})
            if not isinstance(value, dict):
                self._refuse(names[:depth], name, "expected a table")
        table: Mapping[str, Any] = value
        return table

    def _check_keys(self, names: tuple[str, ...], known: tuple[str, ...]) -> None:
        for key in self._table(*names):
            if key not in known:
                why = _WHY_DATA if _names_code(key, self._table(*names)[key]) else ""
                self._refuse(
                    names,
                    key,
                    f"unknown key {key}",
                    why=why,
                    hint=did_you_mean(key, known) or f"keys: {', '.join(known)}",
                )

    def _check_version(self) -> None:
        required = self._table().get("required-version")
        if required is None:
            return
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        from provision import __version__

        try:
            specifiers = SpecifierSet(str(required))
        except InvalidSpecifier:
            hint = 'use the form required-version = ">=0.1,<0.2"'
            self._refuse((), "required-version", f"{required} is not a version range", hint=hint)
        if not specifiers.contains(__version__, prereleases=True):
            hint = f"install a matching version: pip install 'provision-ml{specifiers}'"
            message = f"this is provision {__version__}, but the project requires {specifiers}"
            self._refuse((), "required-version", message, hint=hint)

    def _rules(
        self,
        names: tuple[str, ...],
        key: str,
        value: Any,
        *,
        pattern: re.Pattern[str] = RULE_OR_AREA,
    ) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._refuse(names, key, 'expected a list of rules, such as ["PKG001", "GCP"]')
        for item in value:
            check_rule(item, pattern, lambda what, hint: self._refuse(names, key, what, hint=hint))
        return tuple(value)

    def _refuse_not_ignorable(
        self, names: tuple[str, ...], key: str, rules: tuple[str, ...]
    ) -> None:
        from provision.rules.suppressions import is_ignorable

        for rule in rules:
            if not is_ignorable(rule):
                why = (
                    "it reports unreadable text, a secret, or something that `plan` refuses "
                    "in any case"
                )
                self._refuse(names, key, f"findings of {rule} cannot be accepted", why=why)

    def _severity(self, names: tuple[str, ...], key: str, value: Any) -> Severity:
        known = [severity.value for severity in Severity]
        if value not in known:
            self._refuse(names, key, f"{value} is not a severity", hint=f"use {', '.join(known)}")
        return Severity(value)

    def _refuse(
        self, names: tuple[str, ...], key: str, what: str, *, why: str = "", hint: str = ""
    ) -> NoReturn:
        start = self.text.key((*self.root, *names), key).start
        where = f"{self.text.file.name}:{start.line}:{start.column}"
        name = ".".join((*names, key))
        raise UsageError(
            escape_line(redact(f"{where}: {name}: {what}")), why=why, hint=escape_line(hint)
        )


def _names_code(key: str, value: Any) -> bool:
    text = f"{key} {value}"
    return ".py" in text or key in ("plugins", "rules", "load", "import", "extensions")
