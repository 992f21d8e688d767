"""One call of the API in five languages, for the handbook and the dashboard. Pure: it sends nothing.

Each sample is a whole program, made by the template of its language, that needs what the language brings (Python:
`requests`). It reads the environment for `TOKEN` and, unless it is given, `APPLICATION_ID`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {"sh": "curl", "js": "Node", "python": "Python", "php": "PHP", "go": "Go"}
)
"""The names of languages by the names of their code blocks in Markdown, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request of the API. `url` is whole; an `application_id` is written into the sample."""

    method: str
    url: str
    body: Any = None
    has_token: bool = True
    has_application: bool = True
    application_id: str | None = None
    streams: bool = False
    """The answer has no end: only curl shows it as it comes."""


def write_samples(call: Call) -> Mapping[str, str]:
    """Return the call in each language, by the keys of `LANGUAGES`."""
    languages = ("curl",) if call.streams else LANGUAGES.values()
    values = asdict(call) | {"has_body": call.body is not None}
    made = {name: _templates().get_template(f"{name.lower()}.j2").render(values) for name in languages}
    return {language: made[name] for language, name in LANGUAGES.items() if name in made}


def render_samples(samples: Mapping[str, str]) -> str:
    """Return the samples as HTML, of which the page's script makes tabs."""
    blocks = "".join(
        f'<pre tabindex="0" data-language="{LANGUAGES[language]}"><code>{escape(code)}</code></pre>'
        for language, code in samples.items()
    )
    return f'<div class="samples">{blocks}</div>'


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - programs, not pages: `render_samples` escapes
    )
    templates.filters |= {
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "shell": lambda text: "'" + text.replace("'", "'\\''") + "'",
        "literal": _literal,
    }
    return templates


def _literal(value: Any, null: str, true: str, false: str, braces: str = "{}", colon: str = ": ") -> str:
    """Return a JSON value as a literal of a language that writes text as JSON does."""

    def write(value: Any) -> str:
        match value:
            case None:
                return null
            case bool():
                return true if value else false
            case dict():
                fields = ", ".join(f"{write(name)}{colon}{write(each)}" for name, each in value.items())
                return f"{braces[0]}{fields}{braces[1]}"
            case list() | tuple():
                return f"[{', '.join(map(write, value))}]"
        return json.dumps(value, ensure_ascii=False)

    return write(value)
