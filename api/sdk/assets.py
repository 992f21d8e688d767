"""The SDK's files as they are served. Reads only the package's own files, once.

The sources are ECMAScript modules, one job each, which the npm package has as they are. A page gets them as one classic
script, so that one integrity hash covers all of it: `join` puts them behind each other, in the order of their imports,
in one function, without comments and indentation. Nothing is compiled or renamed.

Paths below ``/sdk/``
    v1/frontage.js              the newest of version 1: may change, kept by browsers for minutes
    <VERSION>/frontage.js       never changes, kept for a year; the one to pin by its integrity hash. Earlier versions
                                come from release files ``<VERSION>.js``, see `api.sdk.release`
    <VERSION>/connect.tgz       the npm package, for ``npm install`` by its address (`api.sdk.npm_archive`)
    v1/npm.json                 the package's version, the path of its archive, and the archive's hash
    v1/python.json              the same of the Python client (``python -m tests.python_client`` makes it)
    v1/frontage_client.tar.gz   the Python client, for ``pip install`` by its address
    v1/copy_buttons.js          for the pages with DNS records to set
    v1/shared.js                for the page behind a sharing link
    v1/returned.js              for the page that a Domain Connect provider sends the browser back to
    v1/providers.json           what a person meets at each known DNS provider (`api.sdk.provider_forms`)
    v1/words/<locale>.json      the modal's words in one language
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from api.sdk.npm_archive import make_npm_archive
from api.sdk.provider_forms import render_provider_forms
from common.version import VERSION as API_VERSION

HERE = Path(__file__).parent
ENTRY = "script.js"
VERSION: str = json.loads((HERE / "package.json").read_text("utf-8"))["version"]
PYTHON_CLIENT = "frontage_client.tar.gz"
MAJOR = f"v{VERSION.partition('.')[0]}"

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w/.-]+)";\n', re.MULTILINE)
_COMMENT = re.compile(r"/\*\*.*?\*/ ?", re.DOTALL)
_INDENTATION = re.compile(r"\n\s+")
_EXPORT = re.compile(r"^export (?:\{[^}]*\};\n|(?=(?:async )?(?:function|const|class)\b))", re.MULTILINE)
_TOP_LEVEL_NAME = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)
_RELEASE_FILE = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.js")
_SCRIPT_TYPE = "text/javascript; charset=utf-8"
_JSON_TYPE = "application/json"
_ARCHIVE_TYPE = "application/gzip"


@dataclass(frozen=True, slots=True)
class SdkAsset:
    """`gzipped` is None where it would not be smaller. `is_pinned`: its address has the version; it never changes."""

    content: bytes
    content_type: str
    is_pinned: bool
    etag: str
    gzipped: bytes | None


@cache
def load_assets(releases: Path | None = None) -> Mapping[str, SdkAsset]:
    """Return the files by their path below ``/sdk/``, read and packed once a process.

    `releases`: a directory with the release files of earlier versions, if there is one.
    """
    script, archive, client = join(HERE / ENTRY).encode(), make_npm_archive(), (HERE / PYTHON_CLIENT).read_bytes()
    return {
        **{
            f"{path.stem}/frontage.js": _asset(path.read_bytes(), _SCRIPT_TYPE, is_pinned=True)
            for path in sorted(releases.glob("*.js") if releases else ())
            if _RELEASE_FILE.fullmatch(path.name)
        },
        f"{MAJOR}/frontage.js": _asset(script, _SCRIPT_TYPE),
        **{
            f"{MAJOR}/{name}": _asset((HERE / name).read_bytes(), _SCRIPT_TYPE)
            for name in ("copy_buttons.js", "shared.js", "returned.js")
        },
        f"{VERSION}/frontage.js": _asset(script, _SCRIPT_TYPE, is_pinned=True),
        f"{VERSION}/connect.tgz": _asset(archive, _ARCHIVE_TYPE, is_pinned=True),
        f"{MAJOR}/npm.json": _asset(
            _describe(VERSION, f"{VERSION}/connect.tgz", integrity=f"sha512-{_base64(hashlib.sha512(archive))}"),
            _JSON_TYPE,
        ),
        f"{MAJOR}/{PYTHON_CLIENT}": _asset(client, _ARCHIVE_TYPE),
        f"{MAJOR}/python.json": _asset(
            _describe(API_VERSION, f"{MAJOR}/{PYTHON_CLIENT}", sha256=hashlib.sha256(client).hexdigest()), _JSON_TYPE
        ),
        f"{MAJOR}/providers.json": _asset(render_provider_forms(), _JSON_TYPE),
        **{
            f"{MAJOR}/words/{path.name}": _asset(path.read_bytes(), _JSON_TYPE)
            for path in sorted((HERE / "words").glob("*.json"))
        },
    }


def _describe(version: str, archive: str, **hashes: str) -> bytes:
    """Return the archive's address below ``/sdk/`` and its hash, as lock files of npm and pip state it."""
    return json.dumps({"version": version, "archive": archive, **hashes}).encode()


def integrity(script: bytes) -> str:
    """Return the value of an ``integrity`` attribute (W3C Subresource Integrity)."""
    return f"sha384-{_base64(hashlib.sha384(script))}"


def _base64(digest: hashlib._Hash) -> str:
    return base64.b64encode(digest.digest()).decode()


def join(entry: Path) -> str:
    """Join the modules behind `entry` into one classic script.

    Raises: `ValueError` for modules that import each other, or have a name in common.
    """
    sources = [path.read_text("utf-8") for path in _in_order(entry)]
    names = Counter(name for source in sources for name in _TOP_LEVEL_NAME.findall(source))
    if shared := sorted(name for name, count in names.items() if count > 1):
        raise ValueError(f"modules have names in common: {', '.join(shared)}")
    body = "\n".join(map(_as_script, sources))
    return f'/*! Frontage SDK {VERSION} */\n(() => {{\n"use strict";\n{body}\n}})();\n'


def _in_order(entry: Path) -> Iterator[Path]:
    """Each module once, behind those that it imports."""
    yielded: set[Path] = set()

    def visit(path: Path, importers: tuple[Path, ...]) -> Iterator[Path]:
        if path in importers:
            raise ValueError(f"modules that import each other: {path.name}")
        if path in yielded:
            return
        for name in _IMPORT.findall(path.read_text("utf-8")):
            yield from visit((path.parent / name).resolve(), (*importers, path))
        yielded.add(path)
        yield path

    yield from visit(entry.resolve(), ())


def _as_script(source: str) -> str:
    return _INDENTATION.sub("\n", _COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", source)))).strip()


def _asset(content: bytes, content_type: str, *, is_pinned: bool = False) -> SdkAsset:
    packed = gzip.compress(content, 9, mtime=0)
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    return SdkAsset(content, content_type, is_pinned, etag, packed if len(packed) < len(content) else None)
