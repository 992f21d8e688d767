"""What instructions were spent on, read from a profile of callgrind: the interpreter, objects, the event loop, ….

Each instruction counts for the function that executes it, not for its callers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

PARTS: Final = {
    "TLS": r"libssl|libcrypto|/_ssl",
    "event loop": r"uvloop|libuv",
    "regular expressions": r"/_sre/",
    "bytecode, frames, calls": r"/Python/|/Include/|/Objects/(?:frame|call|funcobject|classobject|descrobject)",
    "objects, memory": r"/Objects/|/Modules/|malloc",
    "interpreter, its functions not named": r"/bin/python|libpython",
    "C library": r"",
}
"""By pattern of the source file, or else of the library; the first that matches. Inlined functions of Python's headers
mostly serve the interpreter. Debian's interpreter is stripped of its functions' names: it counts as a whole."""

_NAMED: Final = re.compile(r"(ob|fl|fi|fe|cob|cfi|cfl)=\((\d+)\)(?: (.*))?")


def read_parts(profile: Iterable[str]) -> Counter[str]:
    """Return the instructions by part, from the lines of a file that callgrind wrote.

    The format is that of its manual, "Callgrind Format Specification".
    """
    names: dict[tuple[str, str], str] = {}
    library = file = ""
    spent: Counter[tuple[str, str]] = Counter()
    is_inclusive = False
    for line in profile:
        if named := _NAMED.match(line):
            kind, number, name = named.groups()
            table = "library" if kind.endswith("ob") else "file"
            name = names[table, number] = names[table, number] if name is None else name
            if kind == "ob":
                library = name
            elif kind[0] == "f":
                file = name
        elif line.startswith("calls="):
            is_inclusive = True  # the next line: what the called function and its own calls cost
        elif line[:1] in "+-*0123456789":
            if not is_inclusive and len(costs := line.split()) == 2:
                spent[library, file] += int(costs[1])
            is_inclusive = False
    parts: Counter[str] = Counter()
    for (library, file), instructions in spent.items():
        parts[_part(f"{library} {file}")] += instructions
    return parts


def _part(where: str) -> str:
    return next(part for part, pattern in PARTS.items() if re.search(pattern, where))
