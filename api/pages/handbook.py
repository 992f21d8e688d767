"""The handbook as web pages: contents, pages rendered from Markdown, a search."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from api.pages.samples import LANGUAGES, render_samples

_HERE = Path(__file__).parent
_PAGES = _HERE.parent / "handbook"
_CSS = (_HERE / "handbook.css").read_text("utf-8")
_SCRIPT = (_HERE / "handbook.js").read_text("utf-8")
_TEMPLATE = Template((_HERE / "handbook.html").read_text("utf-8"))

CONTENTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "Begin": ("quick-start", "start", "concepts", "moving", "unsupported"),
        "Products": ("power", "secure", "modal", "connect", "domain-check", "monitor", "webhooks"),
        "Domains": ("ownership", "troubleshooting", "origins", "applications"),
        "Operation": (
            "running",
            "several-machines",
            "dashboard",
            "going-live",
            "certificates",
            "observing",
            "upgrading",
            "changelog",
            "backup",
            "security",
            "figures",
        ),
        "Reference": ("api", "versioning", "settings", "commands", "metrics", "alerts", "errors"),
    }
)
"""The pages in the order in which they are read, under their headings."""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    f"connect-src 'self'; script-src {_hash(_SCRIPT)}; style-src {_hash(_CSS)}",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "public, max-age=300",
}

_API: Final = "api"
"""The page whose headings are operations, with samples below them."""
_ERRORS: Final = "errors"
"""The page whose tables name the codes of errors, each of which has an address: ``/docs/errors#not_eligible``."""
_CODE = re.compile(r"<code>([a-z][a-z0-9_]+)</code>")
_KEYWORDS = re.compile(r"^#+ (?P<title>.+)\n+<!-- search: (?P<words>.*?) -->$", re.MULTILINE)
"""Other words for what a section is about, which its text does not have."""
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE)
_WORD = re.compile(r"[\w'./-]+")
_FILLERS = frozenset({"a", "an", "and", "another", "from", "how", "is", "not", "of", "the", "to"})
"""Ignored in a query, unless it has no other words."""
_MOST_IN_TEXT = 4
"""Occurrences of a word beyond this number do not count, so that long sections do not win by length."""
_SUMMARY: Final = (
    "Frontage puts a partner's application on its customers' own domains, with HTTPS: a reverse proxy, a certificate"
    " service, a DNS monitor and a management API. Begin with the partner quick start."
)
_LONGEST_QUERY = 100
_MOST_WORDS = 8  # anyone may search, and a word costs a reading of the handbook
_MOST_HITS = 20
_SNIPPET_CHARS = 200


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it, up to the next heading. `keywords`: other words for what it is about."""

    page: str
    title: str
    anchor: str
    text: str
    level: int
    keywords: str = ""


@dataclass(frozen=True, slots=True)
class HandbookPage:
    """A page of the handbook as HTML, with its sections."""

    name: str
    title: str
    html: str
    markdown: str
    sections: tuple[Section, ...]


class Handbook:
    """All pages, rendered. Made by `load`."""

    def __init__(self, pages: Sequence[HandbookPage]) -> None:
        self._pages = {page.name: page for page in pages}

    @classmethod
    def load(cls, calls: Mapping[str, str] = MappingProxyType({})) -> Handbook:
        """Load and render every page; `calls` is HTML for the end of sections of the API's page, by their headings."""
        markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        names = (name for group in CONTENTS.values() for name in group)
        return cls(
            [
                _render(markdown, name, (_PAGES / f"{name}.md").read_text("utf-8"), calls if name == _API else {})
                for name in names
            ]
        )

    def show(self, name: str) -> str | None:
        """Return the page as HTML; None if there is none of this name."""
        page = self._pages.get(name)
        return self._in_template(page.title, page.html, current=name) if page else None

    def markdown(self, file: str) -> str | None:
        """Return the Markdown of the page that ``name.md`` names; None if there is none."""
        page = self._pages.get(file.removesuffix(".md")) if file.endswith(".md") else None
        return page.markdown if page else None

    def list_for_models(self, base_url: str) -> str:
        """Return the pages, as Markdown that language models read (llmstxt.org)."""
        lines = ["# Frontage", "", f"> {_SUMMARY}", ""]
        for heading, names in CONTENTS.items():
            pages = (self._pages[name] for name in names)
            lines += [f"## {heading}", "", *(f"- [{each.title}]({base_url}/docs/{each.name}.md)" for each in pages), ""]
        return "\n".join([*lines, "## Programs", "", f"- [OpenAPI 3.1]({base_url}/openapi.json)", ""])

    def show_missing(self) -> str:
        """Return the page that is shown in place of one that does not exist."""
        content = "<h1>There is no such page</h1><p>Search above, or look through the contents.</p>"
        return self._in_template("No such page", content)

    def show_hits(self, query: str) -> str:
        """Return the page of what a search finds; `query` is as it was typed."""
        query = query[:_LONGEST_QUERY]
        hits = self.search(query)
        count = {0: "Nothing found", 1: "One section"}.get(len(hits), f"{len(hits)} sections")
        words = _words(query)
        items = "".join(
            f'<li><a href="/docs/{hit.page}#{hit.anchor}"><b>{escape(hit.title)}</b>'
            f"{self._whose(hit)}</a><p>{_snippet(hit.text, words)}</p></li>"
            for hit in hits
        )
        advice = "" if hits else "<p>Try fewer or other words, or look through the contents.</p>"
        content = f'<h1>{count} for “{escape(query)}”</h1>{advice}<ol class="hits">{items}</ol>'
        return self._in_template("Search", content, query=query)

    def sections(self) -> Iterator[Section]:
        """Yield the sections of all pages."""
        for page in self._pages.values():
            yield from page.sections

    def search(self, query: str) -> list[Section]:
        """Return the sections that contain every word of `query`, the best first."""
        words = _words(query)
        scored = [
            (_score(page.title, section, words), section) for page in self._pages.values() for section in page.sections
        ]
        found = [(score, section) for score, section in scored if score]
        return [section for _, section in sorted(found, key=lambda hit: -hit[0])][:_MOST_HITS]

    def _whose(self, section: Section) -> str:
        """Return the page's title, where the section has another."""
        title = self._pages[section.page].title
        return f" <span>{escape(title)}</span>" if title != section.title else ""

    def _in_template(self, title: str, content: str, *, current: str = "", query: str = "") -> str:
        return _TEMPLATE.substitute(
            css=_CSS,
            script=_SCRIPT,
            title=escape(title),
            content=content,
            contents=self._contents(current),
            query=escape(query),
            markdown=f'<p class="as-markdown"><a href="/docs/{current}.md">This page as Markdown</a></p>'
            if current
            else "",
        )

    def _contents(self, current: str) -> str:
        groups = []
        for heading, names in CONTENTS.items():
            links = "".join(
                f'<li><a href="/docs/{name}"{" aria-current=page" if name == current else ""}>'
                f"{escape(self._pages[name].title.partition(':')[0])}</a>"
                f"{_in_page(self._pages[name].sections) if name == current else ''}</li>"
                for name in names
            )
            groups.append(f"<h2>{heading}</h2><ul>{links}</ul>")
        return "".join(groups)


def _render(markdown: MarkdownIt, name: str, text: str, calls: Mapping[str, str]) -> HandbookPage:
    keywords = {found["title"]: found["words"] for found in _KEYWORDS.finditer(text)}
    plain = _COMMENT.sub("", text)
    tokens = markdown.parse(plain)
    anchors: Counter[str] = Counter()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = re.sub(r"[^\w -]", "", tokens[at + 1].content.lower()).replace(" ", "-")
            token.attrSet("id", slug if not anchors[slug] else f"{slug}-{anchors[slug]}")
            anchors[slug] += 1
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", _href(str(child.attrGet("href"))))
    title = next(tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open")
    html = markdown.renderer.render(list(_with_samples(tokens, calls)), markdown.options, {})
    html = html.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
    html = html.replace("<th></th>", "<td></td>").replace("<pre><code", '<pre tabindex="0"><code')
    if name == _ERRORS:
        html = _anchor_codes(html)
    return HandbookPage(name, title, html, plain, tuple(_sections(name, tokens, keywords)))


def _with_samples(tokens: Sequence[Token], calls: Mapping[str, str]) -> Iterator[Token]:
    """Yield the tokens, with code blocks that follow each other, in several languages, as one; `calls` end sections."""
    pending, group = "", list[Token]()
    end = Token("heading_open", "", 0)
    for token in (*tokens, end):
        if group and (token.type != "fence" or token.info in {each.info for each in group}):
            samples = {each.info: each.content for each in group}
            yield _html(render_samples(samples)) if len(group) > 1 else group[0]
            group = []
        if token.type == "fence" and token.info in LANGUAGES:
            group.append(token)
            continue
        if token.type == "heading_open" and pending:
            yield _html(pending)
            pending = ""
        if token.type == "inline":
            pending = calls.get(token.content, "") or pending
        if token is not end:
            yield token


def _anchor_codes(html: str) -> str:
    """Give the first mention of each code in a table an anchor of its own; a long one breaks after an underscore."""
    taken = set(re.findall(r' id="([^"]+)"', html))

    def anchor(found: re.Match[str]) -> str:
        code = found[1]
        shown = code.replace("_", "_<wbr>")
        if code in taken:
            return f"<code>{shown}</code>"
        taken.add(code)
        return f'<code id="{code}">{shown}</code>'

    before, *cells = html.split("<td>")  # what follows a row's last cell, such as a paragraph, is left as it is
    parts = (cell.partition("</td>") for cell in cells)
    return "<td>".join([before, *(_CODE.sub(anchor, cell) + end + rest for cell, end, rest in parts)])


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)


def _in_page(sections: Sequence[Section]) -> str:
    """Return links to a page's sections, those of the third level folded below those of the second."""
    items: list[tuple[Section, list[Section]]] = []
    for section in sections:
        if section.level == 2:
            items.append((section, []))
        elif section.level == 3 and items:
            items[-1][1].append(section)
    links = (
        f"<li>{_link(section)}</li>"
        if not below
        else f"<li><details><summary>{escape(section.title)}</summary><ul>"
        f"{''.join(f'<li>{_link(each)}</li>' for each in below)}</ul></details></li>"
        for section, below in items
    )
    return f'<ul class="in-page">{"".join(links)}</ul>' if len(items) > 1 else ""


def _link(section: Section) -> str:
    return f'<a href="#{section.anchor}">{escape(section.title)}</a>'


def _href(target: str) -> str:
    """Turn a link between files into one between pages."""
    return re.sub(r"^([\w-]+)\.md(?=#|$)", r"/docs/\1", target)


def _sections(page: str, tokens: Sequence[Token], keywords: Mapping[str, str]) -> Iterator[Section]:
    title, anchor, texts, level = "", "", list[str](), 1
    for before, token in zip((None, *tokens), tokens, strict=False):
        if before is not None and before.type == "heading_open":
            if title:
                yield Section(page, title, anchor, " ".join(texts), level, keywords.get(title, ""))
            title, anchor, texts = _plain(token), str(before.attrGet("id")), []
            level = int(before.tag.removeprefix("h"))
        elif token.type == "inline":
            texts.append(_plain(token))
        elif token.type == "fence":
            texts.append(token.content)
    yield Section(page, title, anchor, " ".join(texts), level, keywords.get(title, ""))


def _plain(token: Token) -> str:
    return "".join(child.content if child.type != "softbreak" else " " for child in token.children or ())


def _words(text: str) -> list[str]:
    """Return the words to search for, each once, in lower case.

    Fillers are left out unless there is nothing else.
    """
    words = list(dict.fromkeys(word.casefold() for word in _WORD.findall(text)))
    return ([word for word in words if word not in _FILLERS] or words)[:_MOST_WORDS]


def _score(page_title: str, section: Section, words: Sequence[str]) -> int:
    """Rank a section: 0 unless each word of the query starts one of its words; its heading counts most."""
    score = 0
    for word in words:
        begins = re.compile(rf"(?<!\w){re.escape(_singular(word))}", re.IGNORECASE)
        in_text = sum(1 for _ in islice(begins.finditer(section.text), _MOST_IN_TEXT))
        if not (count := 20 * bool(begins.search(f"{section.title} {section.keywords}")) + in_text):
            return 0
        score += count + 5 * bool(begins.search(page_title))
    return score


def _singular(word: str) -> str:
    """Return the word without the s of a plural: "redirects" finds "redirect" too."""
    return word.removesuffix("s") if len(word) > 4 and not word.endswith("ss") else word


def _snippet(text: str, words: Sequence[str]) -> str:
    """Return the text around the first word found, with the words marked."""
    flat, words = " ".join(text.split()), [_singular(word) for word in words]
    found = [flat.casefold().find(word) for word in words]
    at = min((each for each in found if each >= 0), default=0)
    start = flat.find(" ", max(0, at - _SNIPPET_CHARS // 3)) + 1 if at > _SNIPPET_CHARS // 3 else 0
    end = flat.rfind(" ", start, start + _SNIPPET_CHARS) if start + _SNIPPET_CHARS < len(flat) else len(flat)
    shown = escape(("… " if start else "") + flat[start:end] + (" …" if end < len(flat) else ""))
    pattern = "|".join(f"{re.escape(escape(word))}s?" for word in sorted(words, key=len, reverse=True))
    return re.sub(pattern, lambda match: f"<mark>{match[0]}</mark>", shown, flags=re.IGNORECASE) if pattern else shown
