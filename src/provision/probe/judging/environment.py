"""Judges declared paths, variables and secrets."""

from __future__ import annotations

from collections.abc import Callable

from ..observing.variables import HARMFUL_VARIABLES
from ..values import Judgement
from .cases import Case, bad, listed, ok, skipped, warned


def _paths(case: Case) -> Judgement:
    if not case.expected.paths:
        return skipped("no paths declared")
    states = {name: case.seen[f"path.{name}.state"] for name in case.expected.paths}
    wrong = [f"{name} ({case.expected.paths[name]}) is {state}" for name, state in states.items() if state != "writable"]
    if not wrong:
        return ok("every declared path can be written", "writable", states)
    return bad(
        listed(wrong),
        "writable",
        states,
        "the folder was not made, is not mounted, or belongs to another user",
        "make the folder and give it to the user who runs the training, or correct paths: in the spec",
    )


def _folders(case: Case) -> Judgement:
    seen, paths = case.seen, case.seen["_folder.paths"]
    here = ["tmp", "hf_cache", *(["working"] if case.expected.target.get("kind") == "local" else [])]
    wrong = [f"{_FOLDERS[name]} ({paths[name]}) is {seen[f'folder.{name}']}" for name in here if seen[f"folder.{name}"] not in ("writable", "can be made")]
    if case.expected.training.torch_compile and seen["folder.tmp_runs_programs"] is False:
        wrong.append(f"the temporary folder ({paths['tmp']}) runs no programs (noexec), and torch.compile loads its own from there")
    if not wrong:
        return ok("temporary folder, cache of Hugging Face and working folder can be written", "writable", "writable")
    cause = "a variable names a folder that is not there, or it belongs to another user, or is mounted read-only; Python takes another one without a word"
    return warned(listed(wrong), "writable", wrong, cause, "make the folder, or set TMPDIR, HF_HOME or the working folder to one that this user can write")


def _harmful(case: Case) -> Judgement:
    found = sorted(key.removeprefix("env.") for key in case.seen if key.startswith("env.") and key.removeprefix("env.") in HARMFUL_VARIABLES)
    if not found:
        return ok("no variable that slows training down or changes its results", [], [])
    told = [f"{name}: {HARMFUL_VARIABLES[name]}" for name in found]
    fix = f"unset {' '.join(found)}, or declare what is wanted under env: in the spec"
    return warned(listed(told), [], found, "set by the image, the shell or the notebook server", fix)


def _declared(case: Case) -> Judgement:
    if not case.expected.env:
        return skipped("no variables declared")
    wanted = {name: "set" if name in case.expected.secrets else value for name, value in case.expected.env.items()}
    found = {name: case.seen[f"declared_env.{name}"] for name in wanted}
    wrong = [
        f"{name} is {'not set' if found[name] is None else repr(found[name])}, declared {wanted[name]!r}" for name in wanted if found[name] != wanted[name]
    ]
    if not wrong:
        return ok("every declared variable has its value", wanted, found)
    cause = "the process was started without the environment's variables, or something overrides them"
    return bad(listed(wrong), wanted, found, cause, "start programs through `provision run`, or set the variables where the process starts")


def _secrets(case: Case) -> Judgement:
    if not case.expected.secrets:
        return skipped("no secrets declared")
    found = {name: case.seen[f"secret.{name}"] for name in case.expected.secrets}
    unset = [name for name, state in found.items() if state != "set"]
    if not unset:
        return ok("every declared secret is set", dict.fromkeys(found, "set"), found)
    return bad(
        f"not set: {', '.join(unset)}",
        dict.fromkeys(found, "set"),
        found,
        "the variable or store that the spec names for it holds nothing, or it was not fetched into this process",
        "export the variable that the spec names under secrets:, or check the reference and the access to it",
    )


_FOLDERS = {"tmp": "the temporary folder", "hf_cache": "the cache of Hugging Face", "working": "the working folder"}
JUDGES: dict[str, Callable[[Case], Judgement]] = {"W01": _paths, "W03": _folders, "E01": _harmful, "E02": _declared, "Y01": _secrets}
