"""Collects every pattern of the product: by watching `re` while all modules are imported, and by reading the source.

Watching finds a pattern wherever it is kept (a class, a tuple, a closure) or whatever built it; the source tells how it
is used, and finds what is compiled only when a function runs.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = ("api", "common", "edge", "monitor")
_ROOT: Final = Path(__file__).parents[3]
_FUNCTIONS: Final = {"compile", "match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split"}
_NOT_IMPORTED: Final = ("migrations", "__main__", "windows")


@dataclass(frozen=True)
class Found:
    """`methods`: how it is used, empty where the source does not tell."""

    where: str  # file:line
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    @property
    def is_only_matched(self) -> bool:
        return bool(self.methods) and self.methods <= {"match", "fullmatch"}

    @property
    def is_only_full(self) -> bool:
        return self.methods == {"fullmatch"}


@dataclass(frozen=True)
class Call:
    """One call of a function of `re`."""

    path: str
    first_line: int
    last_line: int
    function: str
    constant: Any  # the pattern, where it stands there
    flags: int
    methods: frozenset[str]  # that are called on what it is assigned to

    @property
    def where(self) -> str:
        return f"{self.path}:{self.first_line}"

    def is_at(self, path: str, line: int) -> bool:
        return self.path == path and self.first_line <= line <= self.last_line


def collect() -> tuple[list[Found], list[Call]]:
    """Return the patterns, and the calls whose pattern neither importing nor the source gives."""
    calls = list(_calls(_uses()))
    found, unknown = [], []
    seen: set[Call] = set()
    for path, line, pattern in _watched():
        call = next(each for each in calls if each.is_at(path, line))
        seen.add(call)
        found.append(Found(call.where, pattern, call.methods))
    for call in calls:
        if call.constant is not None and call.function != "compile":
            pattern = re.compile(call.constant, call.flags)
            found.append(Found(call.where, pattern, call.methods))
        elif call not in seen:
            unknown.append(call)
    return found, unknown


def _sources() -> Iterator[Path]:
    for package in _PACKAGES:
        yield from sorted((_ROOT / package).rglob("*.py"))


def _calls(uses: dict[str, set[str]]) -> Iterator[Call]:
    for path in _sources():
        tree = ast.parse(path.read_text())
        nodes = list(ast.walk(tree))
        names = {id(node.value): _name_of(node) for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign)}
        bound = {id(node.value): node.attr for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_of_re(node.func):
                yield Call(
                    str(path.relative_to(_ROOT)),
                    node.lineno,
                    node.end_lineno or node.lineno,
                    node.func.attr,
                    _constant(node.args[0]),
                    _flags(node),
                    _methods(node.func.attr, bound.get(id(node)), names.get(id(node)), uses),
                )


def _methods(function: str, bound: str | None, name: str | None, uses: dict[str, set[str]]) -> frozenset[str]:
    """How the pattern of a call is used: at once, by a method that is taken of it, or by its name. A pattern that a
    function builds for its callers (`edge.http.fields.splitter`) has none of these."""
    if function != "compile":
        return frozenset({function})
    return frozenset({bound} if bound is not None else uses.get(name or "", ()))


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in _FUNCTIONS
    )


def _name_of(node: ast.Assign | ast.AnnAssign) -> str | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else None


def _constant(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _flags(node: ast.Call) -> int:
    words = " ".join(ast.unparse(each) for each in [*node.args[1:], *(keyword.value for keyword in node.keywords)])
    return sum(getattr(re, name) for name in set(re.findall(r"\bre\.([A-Z]+)\b", words)))


def _uses() -> dict[str, set[str]]:
    """By name: the methods that are called on it, and ``any`` where it is handed on."""
    uses: dict[str, set[str]] = {}
    for path in _sources():
        tree = ast.parse(path.read_text())
        called = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None and isinstance(getattr(node, "ctx", None), ast.Load):
                uses.setdefault(name, set()).add(called.get(id(node), "any"))
    return {name: methods & (_FUNCTIONS | {"any"}) for name, methods in uses.items()}


@contextmanager
def watching() -> Iterator[list[tuple[str, int, re.Pattern[Any]]]]:
    """Note file, line and pattern of every call of `re` in the product."""
    seen: list[tuple[str, int, re.Pattern[Any]]] = []
    original = re._compile  # type: ignore[attr-defined]

    def compile_and_note(pattern: Any, flags: int) -> Any:
        compiled = original(pattern, flags)
        frame = sys._getframe(2)
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in _PACKAGES:
            seen.append((str(path.relative_to(_ROOT)), frame.f_lineno, compiled))
        return compiled

    re._compile = compile_and_note  # type: ignore[attr-defined]
    try:
        yield seen
    finally:
        re._compile = original  # type: ignore[attr-defined]


def _watched() -> list[tuple[str, int, re.Pattern[Any]]]:
    """What `watching` notes while the whole product is imported, in a process of its own."""
    command = [sys.executable, "-c", "from tests.unit.patterns import collected; collected.import_all()"]
    return list(pickle.loads(subprocess.run(command, cwd=_ROOT, check=True, capture_output=True).stdout))


def import_all() -> None:
    """Import every module and print what was compiled."""
    with watching() as seen:
        for package in _PACKAGES:
            for module in pkgutil.walk_packages([str(_ROOT / package)], f"{package}."):
                if not any(word in module.name for word in _NOT_IMPORTED):
                    importlib.import_module(module.name)
    sys.stdout.buffer.write(pickle.dumps(list(dict.fromkeys(seen))))
