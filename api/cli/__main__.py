"""`frontage`: the command line's root. Assembles the commands and renders errors; decides nothing itself.

Commands import what they need when they run, so that `--help` and completion stay quick.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any, Literal, cast

import typer
import typer.main
from typer.core import TyperGroup

from api.cli.examples import EXAMPLES
from api.cli.printing import UNBOUNDED, print_json
from common.errors import DatabaseUnavailable, FrontageError

# Each command, in the order of the help, and where it is: a function, or a group of commands.
_COMMANDS = {
    "up": "api.cli.up:up",
    "edge": "api.cli.roles:edge",
    "api": "api.cli.roles:api",
    "monitor": "api.cli.roles:monitor",
    "migrate": "api.cli.database:migrate",
    "doctor": "api.cli.doctor.command:doctor",
    "audit": "api.cli.audit:audit",
    "status": "api.cli.status:status",
    "backup": "api.cli.backup:backup",
    "restore": "api.cli.backup:restore",
    "token": "api.cli.applications:token",
    "app": "api.cli.applications:app",
    "domain": "api.cli.domains:app",
    "import": "api.cli.domain_files:import_domains",
    "export": "api.cli.domain_files:export_domains",
    "domain-connect": "api.cli.domain_connect:app",
    "user": "api.cli.users:app",
    "organisation": "api.cli.organisations:app",
    "flow": "api.cli.flows:app",
    "alarms": "api.cli.alarms:app",
    "webhook": "api.cli.webhooks:app",
    "certificate": "api.cli.certificates:app",
    "master-key": "api.cli.master_key:app",
    "service": "api.cli.service.command:app",
    "metrics": "api.cli.metrics.command:app",
}

_HELP = "Frontage puts a partner's application on its customers' own domains, with HTTPS."


_GROUP = "frontage.commands"
"""The entry points that add a command: its name, and where it is, as in `_COMMANDS`."""
_AS_JSON = "frontage.as_json"
_COMPLETION = ("--install-completion", "--show-completion")
_SHELLS = ("bash", "zsh", "fish")
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # click's, which some versions of typer bundle


class _Commands(Mapping[str, Any]):
    """The commands by name, each imported and built when it is asked for: a process runs one of them."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, _COMMANDS.get(name) or self._found[name])
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._found, **_COMMANDS})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @cached_property
    def _found(self) -> dict[str, str]:
        """Commands that packages above this one add, such as the demo, by the entry points that they declare."""
        from importlib.metadata import entry_points

        return {each.name: each.value for each in entry_points(group=_GROUP)}


def _build(name: str, place: str) -> Any:
    module, _, attribute = place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=_markup())
        alone.command(name)(found)
        return _with_example(typer.main.get_command(alone), name)
    found.rich_markup_mode = _markup()
    group = typer.main.get_group(found)
    group.name = name  # the help lists it
    for each, command in group.commands.items():
        _with_example(command, f"{name} {each}")
    return group


def _markup() -> Literal["rich"] | None:
    """Boxes and colours on a terminal; elsewhere plain help, each option on one line."""
    return "rich" if sys.stdout.isatty() else None


def _with_example(command: Any, path: str) -> Any:
    if path in EXAMPLES:
        command.epilog = f"Example: frontage {EXAMPLES[path]}"
    return command


class _Root(TyperGroup):
    """Build only the command that is run, and report an invalid argument with our message alone.

    The library's prefix is left out. With `--json`, an error is a JSON document on standard output, too.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("MutableMapping[str, Any]", _Commands())

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        if not sys.stdout.isatty():
            extra["terminal_width"] = UNBOUNDED
        return super().make_context(*arguments, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_AS_JSON] = "--json" in args
        if len(args) == 2 and args[0] in _COMPLETION:  # the shell's name; without one, the library finds which it is
            option: Any = next(each for each in self.params if args[0] in each.opts)
            if args[1] not in _SHELLS:
                ctx.fail(f"{args[0]} knows {', '.join(_SHELLS)}, not {args[1]!r}")
            option.callback(ctx, option, args[1])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            error.message = error.message.removeprefix("Value error, ")
            if ctx.meta[_AS_JSON]:
                path = error.ctx.command_path if error.ctx else "frontage"
                print_json({"message": error.format_message(), "code": "usage", "hint": f"{path} --help"})
            raise
        except FrontageError as error:
            if ctx.meta[_AS_JSON]:
                print_json({"message": str(error)} | _details_of(error))
            raise


def _details_of(error: FrontageError) -> dict[str, str]:
    """Return the fields ``code`` and ``hint`` of an error, where it has them."""
    if isinstance(error, DatabaseUnavailable):
        return {"code": "database_unavailable", "hint": error.remedy}
    code = getattr(error, "code", None)
    return {"code": code} if code else {}


app = typer.Typer(
    cls=_Root,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=_markup(),
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from common.builds import read_build

        typer.echo(f"frontage {read_build()}")
        raise typer.Exit


@app.callback(help=_HELP)
def _root(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print version and commit, and exit."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Exit with status 1 and one line for an `OperatorError`; with 2 for an invalid command line."""
    try:
        app(prog_name="frontage")
    except FrontageError as error:
        words = error.for_operator if isinstance(error, DatabaseUnavailable) else error
        print(f"frontage: {words}", file=sys.stderr)  # noqa: T201 - the command line's own voice
        sys.exit(1)


if __name__ == "__main__":
    main()
