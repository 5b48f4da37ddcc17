"""Commands on the inputs that servers ask for: which there are, answering one, forgetting it."""

from __future__ import annotations

import sys

import click

from catalog.config import Config, InputSpec
from server.cli.answers import InputReport, InputsReport
from server.cli.options import session_command
from server.cli.render_servers import render_inputs
from server.cli.session import Session
from server.inputs import input_states

__all__ = ["inputs"]


@click.group()
def inputs() -> None:
    """Answer what servers ask for: the `inputs` of a VS Code configuration.

    Answers are kept in the keyring of the operating system where there is one, else in a file that
    only you can read. They are never written to the configuration.
    """


@inputs.command("list")
@session_command
def list_inputs(session: Session) -> int:
    """List every input, the servers that name it, and whether it is answered."""
    session.show(_report(session, session.settings.load_config()), render_inputs)
    return 0


@inputs.command("set")
@click.argument("name", metavar="INPUT")
@session_command
def set_input(session: Session, *, name: str) -> int:
    """Answer INPUT: asked for on a terminal, else read from the first line of stdin.

    \b
    Examples:
      skillbank inputs set api-key
      pass show api-key | skillbank inputs set api-key
    """
    config = session.settings.load_config()
    asked = _input(config, name)
    typed = session.ask(asked) if session.interactive else sys.stdin.readline().rstrip("\r\n")
    answer = typed or None
    if answer is None:
        raise click.UsageError(f"no answer to {name!r}: nothing was typed, and nothing stands on stdin")
    if (problem := asked.problem(answer)) is not None:
        raise click.UsageError(problem)
    session.settings.open_secrets().put(asked.key, answer)
    session.show(_report(session, config), render_inputs)
    return 0


@inputs.command("forget")
@click.argument("name", metavar="INPUT")
@session_command
def forget_input(session: Session, *, name: str) -> int:
    """Forget the answer to INPUT, so that it is asked for again."""
    config = session.settings.load_config()
    asked = _input(config, name)
    if not session.settings.open_secrets().remove(asked.key):
        session.say(f"{name} was not answered")
    session.show(_report(session, config), render_inputs)
    return 0


def _input(config: Config, name: str) -> InputSpec:
    if name not in config.inputs:
        known = ", ".join(sorted(config.inputs)) or "none"
        raise click.UsageError(f"the configuration asks for no input {name!r}; there are: {known}")
    return config.inputs[name]


def _report(session: Session, config: Config) -> InputsReport:
    secrets = session.settings.open_secrets()
    states = input_states(config.inputs.values(), config.servers.values(), secrets)
    return InputsReport(
        inputs=tuple(
            InputReport(
                id=state.asked.id,
                kind=state.asked.kind,
                description=state.asked.question,
                password=state.asked.password,
                servers=state.servers,
                answered=state.answered,
            )
            for state in states
        ),
        kept_in=secrets.place,
    )
