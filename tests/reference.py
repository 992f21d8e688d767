"""``python -m tests.reference``: writes the handbook's generated pages and tables from the code.

`tests/unit/test_handbook.py` compares them with the files.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperArgument, TyperGroup

from api.cli.__main__ import app
from api.cli.metrics.alerts import ALERTS
from api.dashboard.actions import ACTIONS, HERE
from api.operations import OPERATIONS
from api.pages.handbook import Handbook
from api.sdk.assets import VERSION, integrity, load_assets
from edge.http import error_responses
from edge.http.error_responses import ErrorResponse
from tests.api_page import api_page
from tests.children import ROOT

HANDBOOK = Path(ROOT) / "api/handbook"
ERROR_CODES = Path(ROOT) / "api/error_codes.json"
ERROR_EXAMPLES = Path(ROOT) / "tests/integration/api/error_examples.json"
API_CODES = "<!-- api codes -->\n"
AFTER_API_CODES = "Beside a 200 or 202"
DASHBOARD_ACTIONS = "<!-- dashboard actions -->\n"
EDGE_CODES = "<!-- edge codes -->\n"
INTEGRITY = "<!-- integrity -->\n"
AFTER_INTEGRITY = "On a page with a Content Security Policy"
_ALERTS = """\
`frontage metrics alerts > frontage.rules.yml` writes these rules; Prometheus loads the file (`rule_files:`) and
scrapes each role's admin port (`EDGE_ADMIN`, `API_ADMIN`, `MONITOR_ADMIN`). `frontage metrics dashboard` prints a
dashboard that Grafana imports. Set `FRONTAGE_PUBLIC_URL` when you run them: each alert links to this handbook there."""
_MAKERS = ("Family", "Family.of")  # name, help, kind, labels
_ROLES = ("edge", "api", "monitor", "common")


def commands() -> str:
    """The page of all commands with their arguments and options."""
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    lines = ["# Commands", "", f"{root.help}", ""]
    for path, command in _leaves(root, ("frontage",)):
        lines += [f"## {' '.join(path)}", "", _flow(command.help or ""), ""]
        parameters = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
        if parameters:
            lines += ["| argument or option | |", "|---|---|", *map(_parameter, parameters), ""]
        if command.epilog:
            lines += [f"`{command.epilog.removeprefix('Example: ')}`", ""]
    return "\n".join(lines).rstrip() + "\n"


def _leaves(group: TyperGroup, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if isinstance(command, TyperGroup):
            if command.invoke_without_command:
                yield (*path, name), command
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name), command


def _parameter(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if isinstance(parameter, TyperArgument):
        names = f"`{parameter.metavar or (parameter.name or '').upper()}`"
    return f"| {names} | {_cell(getattr(parameter, 'help', None) or '')} |"


def _flow(text: str) -> str:
    return text.replace("\b", "").strip()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def metrics() -> str:
    """The page of all metrics, as the roles' admin ports show them."""
    lines = ["# Metrics", "", "At `/metrics` of each role's admin port, in Prometheus' text format.", ""]
    lines += ["| metric | kind | labels | |", "|---|---|---|---|"]
    for name, (kind, labels, words) in sorted(metric_families().items()):
        shown = name + "_total" if kind == "counter" else name
        lines.append(f"| `{shown}` | {kind} | {', '.join(f'`{each}`' for each in labels)} | {_cell(words)} |")
    return "\n".join(lines) + "\n"


def metric_families() -> Mapping[str, tuple[str, tuple[str, ...], str]]:
    """Kind, labels and help of each `Family` that a role makes under a name of its own, by name."""
    found = {}
    for path in (path for role in _ROLES for path in (Path(ROOT) / role).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _MAKERS:
                match [_constant(each) for each in node.args]:
                    case [str(name), str(words), str(kind), *rest]:
                        labels = rest[0] if rest and isinstance(rest[0], tuple) else ()
                        found[name] = ("gauge" if kind in ("maximum", "minimum") else kind, labels, words)
    return found


def _constant(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def alerts() -> str:
    """The page of the rules that `frontage metrics alerts` prints."""
    lines = ["# Alerts", "", f"{_ALERTS}", "", "| alert | what it means | what to do | more |", "|---|---|---|---|"]
    titles = {f"{section.page}#{section.anchor}": section.title for section in Handbook.load().sections()}
    for each in ALERTS:
        page, _, anchor = each.section.partition("#")
        more = f"[{titles[each.section]}]({page}.md#{anchor})"
        lines.append(f"| `{each.name}` ({each.severity}) | {_cell(each.meaning)} | {_cell(each.remedy)} | {more} |")
    return "\n".join(lines) + "\n"


def edge_codes() -> str:
    """The table of the answers that an edge gives by itself."""
    rows = {
        each.code: each for each in vars(error_responses).values() if isinstance(each, ErrorResponse) and each.message
    }
    lines = ["| status | `code` | message |", "|---|---|---|"]
    lines += [f"| {each.status} | `{each.code}` | {each.message} |" for each in sorted(rows.values())]
    return "\n".join(lines) + "\n"


def api_codes() -> str:
    """The table of the codes of the API's errors, each of which leads to its section."""
    lines = ["| `code` | with | meaning |", "|---|---|---|"]
    lines += [f"| [`{code}`](#{code}) | {each['with']} | {each['meaning']} |" for code, each in error_codes().items()]
    return "\n".join(lines) + "\n"


def each_code() -> str:
    """A section a code: what it means, then the example that `tests.integration.api.test_error_examples` reproduces."""
    examples = json.loads(ERROR_EXAMPLES.read_text("utf-8"))
    lines = ["## Each code", "", "Each example is what a test of the service sends, and the very answer but for ids,"]
    lines += ["times, and what is long and stands elsewhere (`…`).", ""]
    for code, each in error_codes().items():
        meaning = each["meaning"]
        lines += [f"### `{code}`", "", f"{meaning[0].upper()}{meaning[1:]}. Comes with {each['with']}.", ""]
        if code in examples:
            lines += _example(examples[code])
        if "appears" in each:
            lines += [f"{each['appears']}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def error_codes() -> Mapping[str, Mapping[str, str]]:
    """Each code of the API's errors, sorted: with what it comes, and what it means."""
    return dict(sorted(json.loads(ERROR_CODES.read_text("utf-8")).items()))


def _example(each: Mapping[str, Any]) -> list[str]:
    sent = "" if each["body"] is None else f"\n{json.dumps(each['body'], ensure_ascii=False)}"
    answer = json.dumps(each["answer"], indent=2, ensure_ascii=False)
    return ["```http", f"{each['method']} {each['path']}{sent}", "", f"{each['status']}", answer, "```", ""]


def dashboard_actions() -> str:
    """The table of what the dashboard does, and the call and the command that do the same."""
    paths = {each.id: f"`{each.method} {each.path}`" for each in OPERATIONS}
    lines = ["| action | API | command |", "|---|---|---|"]
    for each in ACTIONS:
        command = f"`frontage {each.command}`" if each.command != HERE else f"– ({each.command})"
        lines.append(f"| {each.words} | {paths.get(each.operation, f'– ({each.operation})')} | {command} |")
    return "\n".join(lines) + "\n"


def pinned_script() -> str:
    """The script's element with its integrity hash."""
    script = load_assets()[f"{VERSION}/frontage.js"].content
    return f"""```html
<script src="https://api.frontage.example/sdk/{VERSION}/frontage.js"
        integrity="{integrity(script)}"
        crossorigin="anonymous"></script>
```
"""


def generated() -> Mapping[Path, str]:
    """The text of each page that is generated, or holds a generated table."""
    errors = HANDBOOK / "errors.md"
    before, _, _ = errors.read_text("utf-8").partition(EDGE_CODES)
    intro, _, others = before.partition(API_CODES)
    others = others[others.index(AFTER_API_CODES) :]
    dashboard = HANDBOOK / "dashboard.md"
    start, _, _ = dashboard.read_text("utf-8").partition(DASHBOARD_ACTIONS)
    modal = HANDBOOK / "modal.md"
    head, _, rest = modal.read_text("utf-8").partition(INTEGRITY)
    return {
        HANDBOOK / "alerts.md": alerts(),
        HANDBOOK / "api.md": api_page(),
        HANDBOOK / "commands.md": commands(),
        dashboard: f"{start}{DASHBOARD_ACTIONS}\n{dashboard_actions()}",
        HANDBOOK / "metrics.md": metrics(),
        modal: f"{head}{INTEGRITY}{pinned_script()}\n{rest[rest.index(AFTER_INTEGRITY) :]}",
        errors: f"{intro}{API_CODES}\n{api_codes()}\n{others}{EDGE_CODES}\n{edge_codes()}\n{each_code()}",
    }


if __name__ == "__main__":
    for file, text in generated().items():
        file.write_text(text, "utf-8")
