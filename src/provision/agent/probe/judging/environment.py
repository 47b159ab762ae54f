"""Judges declared paths, variables and secrets."""

from __future__ import annotations

from ..model import Judgement
from ..observing.variables import HARMFUL_VARIABLES, describe_harm
from .judgement import JudgeInput, describe_unset, fails, format_list, passes, skipped, warns


def _paths(given: JudgeInput) -> Judgement:
    if not given.expected.paths:
        return skipped("no paths declared")
    states = {name: given[f"path.{name}.state"] for name in given.expected.paths}
    wrong = [
        f"{name} ({given.expected.paths[name]}) is {state}"
        for name, state in states.items()
        if state != "writable"
    ]
    # Files go to the machine's disk first, and to Drive later: a write succeeds without space.
    full = [
        name
        for name in states
        if given.get(f"path.{name}.filesystem") == _DRIVE
        and given.get(f"disk.path.{name}.free_bytes") == 0
    ]
    if full and not wrong:
        return fails(
            f"{format_list(full)}: Google Drive is full",
            "writable",
            states,
            "the account's storage is used up, and new data is not saved to Drive",
            "delete files in Drive and empty its trash, or set `paths` to a folder on the "
            "local disk",
        )
    if not wrong:
        kinds = {name: given.get(f"path.{name}.filesystem") or "" for name in given.expected.paths}
        far = [
            f"{name} on {kind}"
            for name, kind in kinds.items()
            if kind.startswith(_OVER_THE_NETWORK)
        ]
        message = (
            f"; network file systems, slow for many small files: {format_list(far)}" if far else ""
        )
        return passes(f"every declared path is writable{message}", "writable", states)
    is_drive_absent = any(
        state == "absent" and f"/{_MY_DRIVE}/" in f"{given.expected.paths[name]}/"
        for name, state in states.items()
    )
    return fails(
        format_list(wrong),
        "writable",
        states,
        "the folder was not created, is not mounted, belongs to another user, or is inside "
        "a folder that this user cannot enter",
        "allow the cell to mount Google Drive, or correct `paths` in the spec"
        if is_drive_absent
        else "create the folder and give it to the user who runs the training, let that user "
        "enter its parent folders (chmod +x), or correct `paths` in the spec",
    )


def _folders(given: JudgeInput) -> Judgement:
    seen, paths = given.seen, given["_folder.paths"]
    here = [
        "tmp",
        "hf_cache",
        *(["working"] if given.expected.target.get("kind") == "local" else []),
    ]
    wrong = [
        f"{_FOLDERS[name]} ({paths[name]}) is {seen[f'folder.{name}']}"
        for name in here
        if seen[f"folder.{name}"] not in ("writable", "can be made")
    ]
    if given.expected.training.torch_compile and seen["folder.tmp_runs_programs"] is False:
        wrong.append(
            f"the temporary folder ({paths['tmp']}) is mounted noexec, but torch.compile loads "
            "compiled code from it"
        )
    if not wrong:
        return passes(
            "the temporary folder, the Hugging Face cache and the working folder are writable",
            "writable",
            "writable",
        )
    return warns(
        format_list(wrong),
        "writable",
        wrong,
        "an environment variable (such as HOME) names a folder that does not exist, belongs to "
        "another user, "
        "is inside a folder that this user cannot enter, or is mounted read-only; if "
        "TMPDIR names such a folder, Python silently uses a different temporary folder",
        "create the folder, or set TMPDIR, HF_HOME or the working folder to a folder this user "
        "can write to",
    )


def _harmful(given: JudgeInput) -> Judgement:
    observed = sorted(
        key.removeprefix("env.")
        for key in given.seen
        if key.startswith("env.") and key.removeprefix("env.") in HARMFUL_VARIABLES
    )
    if not observed:
        return passes(
            "no environment variable slows down training or changes its results", "none", "none"
        )
    return warns(
        format_list([describe_harm(name, given[f"env.{name}"]) for name in observed]),
        [],
        observed,
        "set by the image, the shell or the notebook server",
        f"{describe_unset({name: given[f'env.{name}'] for name in observed})}, or declare "
        "the intended value under `env` in the spec",
    )


def _declared(given: JudgeInput) -> Judgement:
    if not given.expected.env:
        return skipped("no variables declared")
    required = {
        name: "set" if name in given.expected.secrets else value
        for name, value in given.expected.env.items()
    }
    observed = {name: given[f"declared_env.{name}"] for name in required}
    wrong = [
        f"{name} is {'not set' if observed[name] is None else repr(observed[name])}, but "
        f"{required[name]!r} is declared"
        for name in required
        if observed[name] != required[name]
    ]
    if not wrong:
        return passes("every declared variable has its declared value", required, observed)
    return fails(
        format_list(wrong),
        required,
        observed,
        "the process was started without the environment's variables, or something overrides them",
        "start programs with `provision run`, or set the variables before the process starts",
    )


def _secrets(given: JudgeInput) -> Judgement:
    if not given.expected.secrets:
        return skipped("no secrets declared")
    observed = {name: given[f"secret.{name}"] for name in given.expected.secrets}
    unset = [
        name if state == "unset" else f"{name} (it is blank)"
        for name, state in observed.items()
        if state in ("unset", "blank")
    ]
    if not unset:
        return _odd(observed) or passes(
            "every declared secret is set", dict.fromkeys(observed, "set"), observed
        )
    return fails(
        f"not set: {', '.join(unset)}",
        dict.fromkeys(observed, "set"),
        observed,
        "the variable or secret named in the spec is empty, or the secret was not passed to "
        "this process",
        "export the variable named under `secrets` in the spec, or check the reference to the "
        "secret and the permissions to read it",
    )


def _odd(states: dict[str, str]) -> Judgement | None:
    """Return set variables that can hardly be meant; their values stay private."""
    message = [f"{name} {_ODD[state]}" for name, state in states.items() if state in _ODD]
    if not message:
        return None
    return warns(
        format_list(message),
        dict.fromkeys(states, "set"),
        states,
        "the secret was copied with a line break, or is still a placeholder",
        "if it has a line break, store the secret again without one (use printf, not echo); if "
        "it is a placeholder, replace it with the real value",
    )


def _files(given: JudgeInput) -> Judgement:
    observed = given["credentials.files"]
    if not observed:
        return skipped("there are no credential files in the usual places")
    wrong = [
        f"{kind}: the file can be read by {who}"
        for kind, who in observed.items()
        if who.startswith("others")
    ]
    wrong += [
        f"{kind}: the file named by the variable cannot be read ({who.partition(': ')[2]})"
        for kind, who in observed.items()
        if who.startswith("nobody")
    ]
    if not wrong:
        return passes(
            f"only the owner can read the credential files: {', '.join(sorted(observed))}",
            "readable only by the owner",
            observed,
        )
    return warns(
        format_list(wrong),
        "readable only by the owner",
        observed,
        "the file was copied or written with a permissive umask, or the variable names a file "
        "that exists only on another machine",
        "run `chmod 600` on the file or, if the file is not on this machine, correct the variable "
        "(HF_TOKEN_PATH, GOOGLE_APPLICATION_CREDENTIALS, NETRC)",
    )


_MY_DRIVE = "MyDrive"
_DRIVE = "fuse.drive"
"""Type of a mounted Google Drive, and its free space is that of the account. Sources:
googlecolab/colabtools, drive.py, and its issue 6051.
"""
_OVER_THE_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "lustre",
    "ceph",
    "beegfs",
    "gpfs",
    _DRIVE,
    "fuse.gcsfuse",
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.drive",
)
_ODD = {
    "with white space around it": "begins or ends with white space or a line "
    "break, which HTTP headers do not allow",
    "short": "is too short to be a token",
}
_FOLDERS = {
    "tmp": "the temporary folder",
    "hf_cache": "the Hugging Face cache",
    "working": "the working folder",
}
JUDGES = {
    "W01": _paths,
    "W03": _folders,
    "E01": _harmful,
    "E02": _declared,
    "Y01": _secrets,
    "Y02": _files,
}
