"""Changes of settings on their way: what both AlterConfigs APIs have in common.

Every resource of a request has an outcome of its own; the records of all that can be done are
durable before the answer, in one batch where the store takes them so.  Levels of loggers are no
metadata: they last until the next start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.base.doors import LogLevels
from tarry.base.limits import RESOURCES_PER_REQUEST_MAX
from tarry.base.settings import Settings
from tarry.broker import loggers
from tarry.broker.metadata import changes_told
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.change import ChangeOfMany
from tarry.cluster.config_changes import DELETE, ConfigRefusal, KeyChange, check_form
from tarry.cluster.config_decisions import decide_change_broker, decide_change_topic
from tarry.cluster.records import MetadataRecord
from tarry.cluster.state import ClusterState
from tarry.protocol.message import Message

# Kafka's types of resources with settings.
RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
RESOURCE_BROKER_LOGGER: Final = 8
RESOURCE_CLIENT_METRICS: Final = 16
RESOURCE_GROUP: Final = 32

# Kafka's default for a metadata change that says no time-out of its own.
WRITE_TIMEOUT_MS: Final = 30_000

_DECISIONS: Final = {RESOURCE_TOPIC: decide_change_topic, RESOURCE_BROKER: decide_change_broker}


class ConfigOutcome:
    """Outcome for one resource of a request; `record` if its settings are to change."""

    __slots__ = ("changes", "error_code", "message", "name", "record", "resource_type")

    def __init__(self, resource_type: int, name: str, changes: list[KeyChange]) -> None:
        self.resource_type = resource_type
        self.name = name
        self.changes = changes
        self.error_code = errors.NONE
        self.message: str | None = None
        self.record: MetadataRecord | None = None

    def refuse(self, error_code: int, message: str) -> None:
        """Leave the resource as it is, and say why."""
        self.error_code = error_code
        self.message = message
        self.record = None


class ConfigAlteration(ChangeOfMany[ConfigOutcome]):
    """The settings of some of a request's resources, all of which metadata keep."""

    def __init__(
        self, outcomes: list[ConfigOutcome], settings: Settings, *, is_whole: bool
    ) -> None:
        super().__init__()
        self.outcomes = outcomes
        self._settings = settings
        self._is_whole = is_whole

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        for outcome in self.outcomes:
            outcome.error_code, outcome.message = errors.NONE, None
            decide = _DECISIONS[outcome.resource_type]
            try:
                outcome.record = decide(
                    view, outcome.name, outcome.changes, self._settings, is_whole=self._is_whole
                )
            except ConfigRefusal as refusal:
                outcome.refuse(refusal.error_code, refusal.message)
        return [outcome.record for outcome in self.outcomes if outcome.record is not None]

    def fail(self, error_code: int, message: str) -> None:
        for outcome in self.outcomes:
            if outcome.record is not None:
                outcome.refuse(error_code, message)


def change_configs(
    changes: MetadataChanges,
    context: RequestContext,
    outcomes: list[ConfigOutcome],
    respond: Callable[[list[ConfigOutcome]], Message],
    *,
    is_whole: bool,
    validate_only: bool,
) -> Message | None:
    """Have the changes of metadata made durable, as many at a time as the store takes, and answer
    then; `is_whole`: what is not among them is unset.  All was checked already.
    """
    to_decide = [
        outcome
        for outcome in outcomes
        if outcome.error_code == errors.NONE and outcome.resource_type in _DECISIONS
    ]
    view = changes.store.view

    def partitions_of(outcome: ConfigOutcome) -> int:
        topic = view.topic(outcome.name) if outcome.resource_type == RESOURCE_TOPIC else None
        return 0 if topic is None else len(topic.partitions)

    portions = changes.in_portions(
        to_decide, lambda outcome: (outcome.resource_type, outcome.name), partitions_of
    )
    return changes.ask_for_many(
        context,
        [ConfigAlteration(portion, changes.settings, is_whole=is_whole) for portion in portions],
        lambda _: respond(outcomes),
        WRITE_TIMEOUT_MS,
        validate_only=validate_only,
    )


def set_levels(door: LogLevels, context: RequestContext, outcomes: list[ConfigOutcome]) -> None:
    """Set the levels of the loggers that a request names."""
    for outcome in outcomes:
        if outcome.resource_type == RESOURCE_BROKER_LOGGER and outcome.error_code == errors.NONE:
            before = loggers.levels(door)
            loggers.set_levels(door, outcome.changes)
            changed = changes_told.changed_text(before, loggers.levels(door))
            lines = [f"levels of loggers changed: {changed}"] if changed else []
            changes_told.tell(lines, changes_told.asker(context), errors.NONE, "")


def check_resources(outcomes: list[ConfigOutcome], settings: Settings, *, is_whole: bool) -> None:
    """Refuse what cannot be, whatever the metadata say."""
    if len(outcomes) > RESOURCES_PER_REQUEST_MAX:
        for outcome in outcomes:
            outcome.refuse(
                errors.POLICY_VIOLATION,
                f"one request changes at most {RESOURCES_PER_REQUEST_MAX} resources",
            )
        return
    times: dict[tuple[int, str], int] = {}
    for outcome in outcomes:
        resource = (outcome.resource_type, outcome.name)
        times[resource] = times.get(resource, 0) + 1
    for outcome in outcomes:
        if times[outcome.resource_type, outcome.name] > 1:
            outcome.refuse(errors.INVALID_REQUEST, "this resource is named twice")
            continue
        try:
            _check_resource(outcome, settings, is_whole=is_whole)
        except ConfigRefusal as refusal:
            outcome.refuse(refusal.error_code, refusal.message)


def _check_resource(outcome: ConfigOutcome, settings: Settings, *, is_whole: bool) -> None:
    name, changes = outcome.name, outcome.changes
    kind = outcome.resource_type
    if kind == RESOURCE_BROKER_LOGGER and not is_whole:
        check_form(changes)
        loggers.check(name, changes, settings)
    elif kind == RESOURCE_CLIENT_METRICS:
        _refuse_all(name, changes, "client metrics", "client metrics are not collected")
    elif kind == RESOURCE_GROUP:
        _refuse_all(name, changes, "a group", "the new group protocols are not there yet")
    elif kind not in _DECISIONS:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, f"settings of resource type {kind} cannot be changed so"
        )


def _refuse_all(name: str, changes: list[KeyChange], kind: str, reason: str) -> None:
    """Resources that Kafka has settings for and Tarry none: only to unset one is no mistake."""
    check_form(changes)
    if not name:
        raise ConfigRefusal(errors.INVALID_REQUEST, f"{kind} must be named")
    for key, operation, _ in changes:
        if operation != DELETE:
            raise ConfigRefusal(
                errors.INVALID_CONFIG, f"{key[:80]!r} of {kind} cannot be set: {reason}"
            )
