"""`provision completion`: prints the completion script of a shell."""

from __future__ import annotations

import click

from provision.cli.app import examples


@click.command(
    epilog=examples(
        'eval "$(provision completion bash)"',
        "provision completion fish > ~/.config/fish/completions/provision.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the completion script for a shell.

    Completes commands, options, targets, rules, checks, GPUs and fact tables.
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    completer = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    app = ctx.find_root().command
    click.echo(completer(app, {}, "provision", "_PROVISION_COMPLETE").source())
    return 0
