"""What pyproject.toml cannot say: the wheel holds the native libraries, for the kind of machine that it is made on.

Without a C compiler it is made without them, and each installation compiles them when it first needs them. For another
kind of machine the compiler is in CC and the wheel's platform in INFLIGHT_PLATFORM (manylinux2014_aarch64):
packaging/wheels does so.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

PLATFORM = os.environ.get("INFLIGHT_PLATFORM", "")
MACHINE = PLATFORM.partition("_")[2] or platform.machine()


class BuildWithLibraries(build_py):
    """Compiles them beside the sources in the build's own folder."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode or not self.distribution.has_ext_modules():
            return
        # A build has only its tools on its path.
        sys.path.insert(0, str(Path(__file__).parent))
        from probes.inprocess import building, pm, tap

        package = Path(self.build_lib, "probes", "inprocess")
        for sources in (tap.SOURCES, pm.SOURCES):
            library = package / building.SHIPPED.name / building.name_of(sources, MACHINE)
            library.parent.mkdir(parents=True, exist_ok=True)
            why = building.compile_into(sources[0], library)
            if why:
                library.unlink(missing_ok=True)
                self.warn(f"{sources[0].name} is not in the wheel: {why}")


class WheelOfOneMachine(bdist_wheel):
    """For any Python: the libraries know nothing of it."""

    def get_tag(self) -> tuple[str, str, str]:
        """The wheel's tag."""
        return ("py3", "none", PLATFORM or super().get_tag()[2])


class WithLibraries(Distribution):
    """Is for one kind of machine where there is a compiler for it."""

    def has_ext_modules(self) -> bool:
        """Whether something in it is for one kind of machine."""
        compilers = (*shlex.split(os.environ.get("CC", ""))[:1], "cc", "gcc", "clang")
        return sys.platform == "linux" and any(map(shutil.which, compilers))


setup(distclass=WithLibraries, cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": WheelOfOneMachine})
