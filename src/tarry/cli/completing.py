"""Names of topics and groups with which a shell completes a command line.

Every failure is silence: a shell that completes has no place for a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tarry.client import Admin

# Time-out of the requests: a person waits for the completion while typing.
SECONDS_MAX: Final = 0.5

NamesOf = Callable[["Admin"], list[str]]


def _topics_of(admin: Admin) -> list[str]:
    return [one.name for one in admin.list_topics(SECONDS_MAX) if not one.is_internal]


def _groups_of(admin: Admin) -> list[str]:
    return [one.group_id for one in admin.list_groups(timeout=SECONDS_MAX)]


# Names of parameters that are completed, with the function that lists the topics or groups.
KINDS: Final[dict[str, NamesOf]] = {
    "topic": _topics_of,
    "topics": _topics_of,
    "group": _groups_of,
    "groups": _groups_of,
    "group_id": _groups_of,
}

# Groups of commands whose parameter `name` or `names` is a topic or a group.
OWNERS: Final[dict[str, NamesOf]] = {"topics": _topics_of, "groups": _groups_of}

# Commands that create something: its name does not exist yet and cannot be completed.
MAKERS: Final = ("create",)


def complete_names(command: click.Command, owner: str = "") -> None:
    """Set up the completion of a command's parameters that name topics or groups."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            complete_names(one, command.name or "")
    for parameter in command.params:
        names_of = KINDS.get(parameter.name or "")
        if parameter.name in ("name", "names") and command.name not in MAKERS:
            names_of = OWNERS.get(owner)
        if names_of is not None and isinstance(parameter.type, type(click.STRING)):
            # The argument `shell_complete` of a parameter sets the same attribute; set here, no
            # command has to import this module.
            parameter._custom_shell_complete = _completer(names_of)


def _completer(
    names_of: NamesOf,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        given = context.params.get(parameter.name or "") or ()
        taken = given if isinstance(given, tuple) else ()
        return [
            CompletionItem(name)
            for name in _names(context, names_of)
            if name.startswith(incomplete) and name not in taken
        ]

    return complete


def _names(context: click.Context, names_of: NamesOf) -> list[str]:
    from tarry.cli.running import DEFAULT_ADDRESS, client_arguments
    from tarry.client import Admin

    bootstrap = context.params.get("bootstrap") or DEFAULT_ADDRESS
    try:
        # Make the context the current one, so that the settings of its profile are found.
        with context.scope(cleanup=False), Admin(client_arguments(str(bootstrap), ())) as admin:
            return sorted(names_of(admin))
    except Exception:
        # Ignore any error: it must not appear in the line that is being typed.
        return []
