# SPDX-License-Identifier: MIT
"""The command `moongrid`, which the wheel contains. The package calls it for moves of all ranks."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ._abi import Status
from ._errors import error
from ._library import PACKAGE


def path() -> str:
    """Return the path of the command: in the wheel, else in the clone, else on the PATH."""
    for file in (PACKAGE / "bin" / "moongrid", PACKAGE.parents[1] / "moongrid"):
        if file.is_file():
            return str(file)
    if found := shutil.which("moongrid"):
        return found
    raise error(Status.MISSING, "the command moongrid is not here: neither in the package nor on the PATH")


def run(*arguments: str) -> str:
    """Return the output of the command; raise its error."""
    done = subprocess.run([path(), *arguments], capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode == 0:
        return done.stdout
    said = re.sub(r"^moongrid: ", "", done.stderr.strip()) or f"the command ended with {done.returncode}"
    raise error(done.returncode * 100 if 1 <= done.returncode <= 5 else Status.BACKEND, said)


def environment() -> dict[str, str]:
    """Return the environment in which the command finds the backend for the launcher's MPI, and also that MPI if it is
    a package of this Python."""
    variables = dict(os.environ)
    mpich = any(name.startswith(("PMI_", "MPIR_", "HYDI_")) for name in variables)
    folders = [PACKAGE / "lib" / ("mpich" if mpich and "PMIX_RANK" not in variables else "openmpi"),
               Path(sys.prefix) / "lib"]
    found = [str(f) for f in folders if any(f.glob("libmoongrid_mpi.so.*")) or any(f.glob("libmpi.so.*"))]
    if before := variables.get("LD_LIBRARY_PATH"):
        found.append(before)
    if found:
        variables["LD_LIBRARY_PATH"] = ":".join(found)
    return variables


def main() -> None:
    """Replace this process by the command."""
    file = path()
    os.execve(file, ["moongrid", *sys.argv[1:]], environment() if (PACKAGE / "lib").exists() else dict(os.environ))
