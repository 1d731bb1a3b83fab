"""Whether somebody is recording into a folder right now.

A recorder holds a lock on a file of the folder for as long as it lives. The system lets go of it with the process,
however that ends, so nobody has to guess from process ids or from the age of files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NAME = "recorder.lock"


def take(folder: Path) -> int:
    """Hold the lock of a new recording; the file to keep open. Raises OSError, FileExistsError among them."""
    import fcntl

    file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def is_held(folder: Path) -> bool:
    """Whether a recorder lives that writes into `folder`. False where that cannot be asked."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        file = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that two who ask at once do not take each other for the recorder.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    else:
        return False
    finally:
        os.close(file)
