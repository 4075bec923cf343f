"""The reference of the commands, from their argparse parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

import host_reporter.options
import sasp.__main__
from controller.cli import main
from docs.generate.markdown import code, heading, sentence, table

WIDTH = 100
"""Breaks the lines of a usage at this many characters."""


def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """Returns the parser of each command by its name."""
    return {
        "trainyard": main.parser(),
        "host-reporter": host_reporter.options.parser(),
        "python -m sasp": sasp.__main__.parser(),
    }


def reference(found: Mapping[str, argparse.ArgumentParser] | None = None) -> str:
    """Returns the Markdown, of our commands or of those given. Raises MissingTextError where a help text is missing."""
    chosen = parsers() if found is None else found
    return "".join(_command(2, name, parser, parser.description) for name, parser in chosen.items())


def subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str | None, argparse.ArgumentParser]]:
    """Yields the name, the help and the parser of each subcommand."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, sub in action.choices.items():
                yield name, helps.get(name), sub


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yields the arguments of a parser, without the help and the subcommands."""
    for action in parser._actions:
        if not isinstance(action, argparse._HelpAction | argparse._VersionAction | argparse._SubParsersAction):
            yield action


def _command(level: int, name: str, parser: argparse.ArgumentParser, text: str | None) -> str:
    lines = heading(level, code(name), name.replace(" ", "-"))
    lines += sentence(text, f"the command {name}") + "\n\n"
    lines += f"```text\n{_usage(name, parser)}\n```\n\n"
    formatter = argparse.HelpFormatter(prog=name)
    rows = [
        [code(_written(action)), sentence(_help(formatter, action), f"the argument {_written(action)} of {name}")]
        for action in arguments(parser)
    ]
    if rows:
        lines += table(["argument", "meaning"], rows)
    for sub, about, sub_parser in subcommands(parser):
        lines += _command(level + 1, f"{name} {sub}", sub_parser, sub_parser.description or about)
    return lines


def _help(formatter: argparse.HelpFormatter, action: argparse.Action) -> str | None:
    return formatter._expand_help(action) if action.help else None


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(prog=name, width=WIDTH)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    return formatter.format_help().rstrip()


def _written(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = (
            str(action.metavar) if action.metavar is not None else "{" + ",".join(map(str, action.choices or ())) + "}"
        )
    if value == "{}":
        value = action.dest.upper()
    value = f"[{value}]" if action.nargs == "?" else value
    return f"{action.option_strings[-1] if action.option_strings else ''} {value}".strip()
