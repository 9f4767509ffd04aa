# SPDX-License-Identifier: MIT
"""The declarations for ctypes beside the C compiler's: every struct's size and offsets, every enum, every function."""
from __future__ import annotations

import ctypes
import enum
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import ROOT, Tap

from moongrid import _abi
from moongrid._library import library

HEADERS = [path for path in sorted((ROOT / "src").glob("moongrid*.h"))
           if path.stem not in ("moongrid_mpi", "moongrid_nccl", "moongrid_lua")]


def structs() -> dict[str, type[ctypes.Structure]]:
    return {name: value for name, value in vars(_abi).items()
            if name.startswith("mgrid_") and isinstance(value, type) and issubclass(value, _abi.Struct)}


def enums() -> dict[str, int]:
    found = {f"MGRID_{member.name}": int(member) for value in vars(_abi).values()
             if isinstance(value, type) and issubclass(value, enum.IntEnum) and value is not enum.IntEnum for member in value}
    return {**found, **{f"MGRID_{name}": value for name, value in vars(_abi).items()
                        if name.isupper() and isinstance(value, int)}}


def of_compiler() -> dict[str, int]:
    """What a C program prints of the headers: sizes, offsets, values, and the bytes of the INIT macros."""
    lines = []
    for name, struct in structs().items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, *_ in struct._fields_:
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    lines += [f'printf("{name} %lld\\n", (long long){name});' for name in enums()]
    for name in _abi._DEFAULTS:
        macro = f"{name.upper()}_INIT"
        lines += [f"{{ {name} x; memset(&x, 0, sizeof x); x = ({name}){macro};"]
        for field, kind, *_ in structs()[name]._fields_:
            if kind in (ctypes.c_int64, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int, ctypes.c_bool):
                lines.append(f'printf("{name}.{field}.init %lld\\n", (long long)x.{field});')
            elif kind is ctypes.c_double:
                lines.append(f'printf("{name}.{field}.init %lld\\n", (long long)(x.{field} * 1000));')
            elif kind is ctypes.c_char_p:
                lines.append(f'printf("{name}.{field}.init %d\\n", x.{field} ? (int)strlen(x.{field}) : -1);')
        lines += ["}"]
    source = ("#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n#include <moongrid.h>\nint main(void) {\n"
              + "\n".join(lines) + "\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.c").write_text(source, encoding="utf-8")
        subprocess.run(["cc", f"-I{ROOT / 'src'}", f"{folder}/a.c", "-o", f"{folder}/a"], check=True)
        said = subprocess.run([f"{folder}/a"], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in (line.split() for line in said.splitlines())}


def of_package() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, struct in structs().items():
        found[name] = ctypes.sizeof(struct)
        for field, *_ in struct._fields_:
            found[f"{name}.{field}"] = getattr(struct, field).offset
    found.update(enums())
    for name in _abi._DEFAULTS:
        value = structs()[name]()
        for field, kind, *_ in structs()[name]._fields_:
            at = getattr(value, field)
            if kind is ctypes.c_double:
                found[f"{name}.{field}.init"] = int(at * 1000)
            elif kind is ctypes.c_char_p:
                found[f"{name}.{field}.init"] = -1 if at is None else len(at)
            elif isinstance(at, (int, bool)) and kind is not ctypes.c_void_p:
                found[f"{name}.{field}.init"] = int(at)
    return found


def main() -> None:
    tap = Tap()
    text = "".join(re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S) for path in HEADERS)
    declared = set(re.findall(r"MGRID_API\s[^;(]*?(mgrid_\w+)\(", text))
    tap.same(set(_abi.FUNCTIONS) ^ declared, set(), f"the {len(declared)} functions of the headers")
    tap.check(all(hasattr(library().c, name) for name in declared), "the library exports them")
    for name in set(re.findall(r"typedef struct (mgrid_\w+) {", text)) | {"mgrid_arg"}:
        tap.check(name in structs(), f"{name} is there")
    wanted = of_compiler()
    got = of_package()
    for kind, among in (("sizes and offsets", [n for n in wanted if n.startswith("mgrid_") and not n.endswith(".init")]),
                        ("values of enums", [n for n in wanted if n.startswith("MGRID_")]),
                        ("what INIT macros set", [n for n in wanted if n.endswith(".init")])):
        tap.same([(n, got.get(n)) for n in among if got.get(n) != wanted[n]],
                 [(n, wanted[n]) for n in among if got.get(n) != wanted[n]], f"{len(among)} {kind}")
    tap.same(len(set(re.findall(r"\bMGRID_[A-Z_]+\b(?=[ ,=][^;{}]*?[,}=])",
                                "".join(re.findall(r"enum[^{;]*{.*?}", text, flags=re.S)))) - set(enums())), 0,
             "no enum is left out")
    tap.end()


if __name__ == "__main__":
    if not shutil.which("cc"):
        print("1..0 # SKIP no cc")
        sys.exit(0)
    main()
