"""Google Drive: in the stand-in, the folder that COLAB_RIG_DRIVE names; without it, a user who does
not allow access. The conditions of a mount point are those of googlecolab/colabtools, drive.py.
"""

import os
from pathlib import Path

from google.colab import _message


def mount(mountpoint, force_remount=False, timeout_ms=120000, readonly=False):
    """Show the user's files below a folder."""
    if " " in mountpoint:
        raise ValueError("Mountpoint must not contain a space.")
    kept = os.environ.get("COLAB_RIG_DRIVE")
    if not kept:
        raise _message.MessageError("Error: credential propagation was unsuccessful")
    mount_folder = Path(mountpoint)
    if (mount_folder / "My Drive").is_dir():
        print(f"Drive already mounted at {mountpoint}; to attempt to forcibly remount, ...")
        return
    if mount_folder.is_symlink():
        raise ValueError("Mountpoint must not be a symlink")
    if mount_folder.is_dir() and any(mount_folder.iterdir()):
        raise ValueError("Mountpoint must not already contain files")
    if not mount_folder.parent.exists():
        raise ValueError("Mountpoint must be in a directory that exists")
    mount_folder.mkdir(exist_ok=True)
    for name in ("MyDrive", "My Drive"):
        (mount_folder / name).symlink_to(kept)
    print(f"Mounted at {mountpoint}")
