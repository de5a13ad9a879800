"""`tarry completion`: scripts that let a shell complete commands, options, topics and groups."""

from __future__ import annotations

import click

from tarry.cli.running import quietly

EXAMPLES = """
\b
Examples:
  eval "$(tarry completion bash)"                              in ~/.bashrc
  eval "$(tarry completion zsh)"                               in ~/.zshrc, behind compinit
  tarry completion fish > ~/.config/fish/completions/tarry.fish

\b
Names of topics and groups are asked of the cluster that TARRY_BOOTSTRAP_SERVERS, the profile or
-b on the line names; without an answer within half a second there are none.
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@quietly
def completion(*, shell: str) -> None:
    """Print the script that completes commands, topics and groups in a shell."""
    from click.shell_completion import get_completion_class

    from tarry.cli.main import COMPLETION_VARIABLE, tarry

    found = get_completion_class(shell)
    assert found is not None
    script = found(tarry, {}, "tarry", COMPLETION_VARIABLE)
    # Do not call `source()`: it starts the shell to check its version, and it may not be installed.
    click.echo(script.source_template % script.source_vars())
