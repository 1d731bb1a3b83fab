"""What to start: command lines of the recorder, and where its recording goes."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from inspector.errors import Usage

SUFFIX = ".inflight"
# Isolated, so that an `inspector` folder of the working directory is never taken for this program.
PROGRAM: tuple[str, ...] = (sys.executable, "-I", "-m", "inspector")
_LONGEST_NAME = 40


@dataclass(frozen=True)
class Launch:
    """A recorder's command line, the recording that it makes, and the folder that it is started in (None: this one).

    `environment` is set for it besides the window's own: what must not stand in a command line.
    """

    argv: tuple[str, ...]
    folder: Path
    directory: Path | None = None
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def kind(self) -> str:
        """The command of `inflight` that it is: demo, record or attach; '' for another."""
        return next((word for word in self.own if word in ("demo", "record", "attach")), "")

    @property
    def own(self) -> tuple[str, ...]:
        """The recorder's own arguments, without the command that it runs."""
        return self.argv[: self.argv.index("--")] if "--" in self.argv else self.argv

    @property
    def takes_lines(self) -> bool:
        """Whether its input is a pipe for lines of control."""
        return "--control" in self.own

    @property
    def has_knobs(self) -> bool:
        """Whether what runs can be changed and paused while it runs."""
        return self.kind == "demo" and self.takes_lines

    @property
    def uses_nsys(self) -> bool:
        """Whether the command runs under Nsight Systems."""
        return any(word.startswith("--nsys") for word in self.own)

    def reports(self) -> list[Path]:
        """What Nsight Systems has written beside the recording, in its order."""
        stem = self.folder.with_suffix("").name
        name = re.compile(re.escape(stem) + r"(?:-(\d+))?\.nsys-rep")
        with suppress(OSError):
            found = [(match, path) for path in self.folder.parent.iterdir() if (match := name.fullmatch(path.name))]
            return [path for match, path in sorted(found, key=lambda pair: int(pair[0][1] or 1))]
        return []

    @property
    def title(self) -> str:
        """What runs, in words."""
        if self.kind == "demo":
            return "Built-in engine"
        if self.kind == "attach":
            return f"Attached to {self.own[self.own.index('attach') + 1]}"
        # On one line, however many the command has.
        return " ".join(shlex.join(self.argv[len(self.own) + 1 :] or self.argv).split())


def from_argv(argv: Sequence[str]) -> Launch:
    """A recorder's command line as given; without --out in it, the recording goes to the user's data folder."""
    words = list(argv)
    end = words.index("--") if "--" in words else len(words)
    for at, word in enumerate(words[:end]):
        if word == "--out" and at + 1 < end:
            return Launch(tuple(words), Path(words[at + 1]).absolute())
        if word.startswith("--out="):
            return Launch(tuple(words), Path(word.partition("=")[2]).absolute())
    folder = new_recording(_name_of(words, end))
    words[end:end] = ["--out", str(folder)]
    return Launch(tuple(words), folder)


def demo(options: Sequence[str], folder: Path | None = None) -> Launch:
    """The built-in engine with those options."""
    folder = folder or new_recording("demo")
    return Launch((*PROGRAM, "demo", "--headless", "--control", "--out", str(folder), *options), folder)


def command(
    line: str, directory: Path | None = None, folder: Path | None = None, options: Sequence[str] = ()
) -> Launch:
    """Any command line, split as a shell would; nothing is expanded. `options` are the recorder's. Raises Usage."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise Usage("this command line cannot be split into words", str(error).lower(), "close the quotes") from None
    if not words:
        raise Usage("no command", "", "type the command that is to be recorded")
    if directory is not None and not directory.is_dir():
        raise Usage(f"{directory} is no folder", "", "choose one that is there")
    folder = folder or new_recording(Path(words[0]).name)
    argv = (*PROGRAM, "record", "--headless", "--control", "--out", str(folder), *options, "--", *words)
    return Launch(argv, folder, directory)


def attach(
    target: str, folder: Path | None = None, certificate: str = "", environment: tuple[tuple[str, str], ...] = ()
) -> Launch:
    """A server's address or a process, and what lets us in there. Raises Usage."""
    target = target.strip()
    if not target or target.startswith("-") or any(letter.isspace() for letter in target):
        raise Usage("no address", "", "type the address of a server, http://HOST:PORT, or the number of a process")
    _keeps_no_secret(target)
    folder = folder or new_recording(f"attach-{target.partition('://')[2] or target}")
    trust = ("--ca", certificate) if certificate else ()
    argv = (*PROGRAM, "attach", target, "--headless", "--out", str(folder), *trust)
    return Launch(argv, folder, environment=environment)


def again(launch: Launch) -> Launch:
    """The same once more, into a new recording in the data folder. Raises Usage."""
    words = list(launch.argv)
    end = len(launch.own)
    for at in range(end):
        if words[at] == "--out":
            del words[at : at + 2]
            break
        if words[at].startswith("--out="):
            del words[at]
            break
    found = from_argv(words)
    return Launch(found.argv, found.folder, launch.directory, launch.environment)


def recordings() -> Path:
    """Where recordings go that nobody named a place for. They stay until they are deleted."""
    return Path(platformdirs.user_data_dir("inflight-inspector", appauthor=False)) / "recordings"


def new_recording(name: str) -> Path:
    """A place for a recording that is not taken: `name` and the time. The folder above it is made. Raises Usage."""
    above = recordings()
    try:
        above.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise Usage(f"no recording can be made in {above}", why, "name another place for it") from error
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[:_LONGEST_NAME] or "run"
    base = f"{plain}-{time.strftime('%Y%m%d-%H%M%S')}"
    number, found = 1, above / f"{base}{SUFFIX}"
    while os.path.lexists(found):
        number += 1
        found = above / f"{base}-{number}{SUFFIX}"
    return found


def named_recording(text: str) -> Path | None:
    """The place that a user typed, relative to the data folder; None where nothing was typed. Raises Usage."""
    if not text.strip():
        return None
    path = Path(text.strip()).expanduser()
    if path.suffix != SUFFIX:
        path = path.with_name(path.name + SUFFIX)
    path = path if path.is_absolute() else recordings() / path
    if os.path.lexists(path):
        raise Usage(f"{path.name} is there already", "", "choose another name")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"no recording can be made in {path.parent}", error.strerror or str(error)) from error
    return path


def _keeps_no_secret(target: str) -> None:
    """The address stands in a command line and is remembered. Raises Usage where a part of it may let somebody in."""
    try:
        parts = urlsplit(target if "://" in target else f"http://{target}")
    except ValueError:
        return  # The recorder says what is wrong with it.
    if "@" in parts.netloc or parts.query:
        why = "it would stand in a command line, for anybody to read"
        raise Usage("the address holds a password or a query", why, "leave it out; a token has a field of its own")


def _name_of(words: Sequence[str], end: int) -> str:
    if "record" in words[:end] and end + 1 < len(words):
        return Path(words[end + 1]).name
    return next((word for word in words[:end] if word in ("demo", "record", "attach")), "run")
