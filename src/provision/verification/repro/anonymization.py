"""Removes people and machines from expectations before they become part of a program."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from provision.agent.probe.proofs.trainer import NOT_EXERCISED
from provision.agent.probe.redactor import Redactor

HOME_VARIABLE = "${HOME}"
_OTHER_HOMES = re.compile(
    r"/(?:home|Users)/(?!(?:jupyter|shared|data|public)(?![\w.-]))[\w.-]+", re.IGNORECASE
)
"""A person's folder on the verified machine, which may not be this one; `jupyter` is everyone's on
Workbench.
"""
_IDENTIFYING_ARGUMENTS = (
    frozenset(
        {"hub_model_id", "hub_token", "run_name", "logging_dir", "project", "trackio_space_id"}
    )
    | NOT_EXERCISED
)
"""Arguments of which no proof uses the value, which names people and folders."""


def anonymize_expectations(promised: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Return expectations with ${HOME} for home folders, and without tokens and addresses.

    The programs replace ${HOME} by the home of the person who starts them.
    """
    training = promised.get("training")
    kept = {part: _anonymize(promised[part], home) for part in ("paths", "env") if part in promised}
    if isinstance(training, Mapping) and isinstance(given := training.get("arguments"), Mapping):
        arguments = {
            name: "left out" if name in _IDENTIFYING_ARGUMENTS else _anonymize(value, home)
            for name, value in given.items()
        }
        kept["training"] = {**training, "arguments": arguments}
    return {**promised, **kept}


def _anonymize(value: Any, home: str) -> Any:
    if isinstance(value, str):
        own = (
            re.sub(re.escape(home) + r"(?![\w.-])", HOME_VARIABLE, value)
            if len(home) > 1
            else value
        )
        return Redactor().text(_OTHER_HOMES.sub(HOME_VARIABLE, own))
    if isinstance(value, Mapping):
        return {name: _anonymize(item, home) for name, item in value.items()}
    return [_anonymize(item, home) for item in value] if isinstance(value, list) else value
