"""Changes of settings on their way: what both AlterConfigs APIs have in common.

Every resource of a request has an outcome of its own; the records of all that can be done are one
batch, durable before the answer.  Levels of loggers are no metadata: they last until the next
start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.base.limits import RESOURCES_PER_REQUEST_MAX
from tarry.broker import changes_told, loggers
from tarry.broker.metadata_writes import MetadataWrite, failure_sentence, propose_or_wait
from tarry.broker.request import RequestContext
from tarry.cluster.config_changes import DELETE, Change, ConfigRefusal, check_form
from tarry.cluster.config_decisions import decide_change_broker, decide_change_topic
from tarry.cluster.records import MetadataRecord
from tarry.protocol.message import Message

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# Kafka's types of resources with settings.
RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
RESOURCE_BROKER_LOGGER: Final = 8
RESOURCE_CLIENT_METRICS: Final = 16
RESOURCE_GROUP: Final = 32

# Kafka's default for a metadata change that says no time-out of its own.
WRITE_TIMEOUT_MS: Final = 30_000


class ConfigOutcome:
    """What becomes of one resource of a request; `record` if its settings are to change."""

    __slots__ = ("changes", "error_code", "message", "name", "record", "resource_type")

    def __init__(self, resource_type: int, name: str, changes: list[Change]) -> None:
        self.resource_type = resource_type
        self.name = name
        self.changes = changes
        self.error_code = errors.NONE
        self.message: str | None = None
        self.record: MetadataRecord | None = None

    def refuse(self, error_code: int, message: str) -> None:
        self.error_code = error_code
        self.message = message
        self.record = None


Respond = Callable[[list[ConfigOutcome]], Message]


class ConfigWrite(MetadataWrite):
    """Waits until the new settings count, then answers."""

    def __init__(
        self, context: RequestContext, outcomes: list[ConfigOutcome], respond: Respond
    ) -> None:
        super().__init__(context.now_ms + WRITE_TIMEOUT_MS)
        self.context = context
        self.outcomes = outcomes
        self.make_response = respond

    def on_complete(self) -> None:
        self.tell_changes()
        if self.error_code != errors.NONE:
            for outcome in self.outcomes:
                if outcome.record is not None:
                    outcome.refuse(self.error_code, failure_sentence(self.error_code))
        self.context.respond(self.make_response(self.outcomes))


def change_configs(
    broker: Broker,
    context: RequestContext,
    outcomes: list[ConfigOutcome],
    respond: Respond,
    *,
    is_whole: bool,
    validate_only: bool,
) -> Message | None:
    """Decide on every resource, make durable what can be done, and answer then."""
    _decide(broker, outcomes, is_whole=is_whole)
    if not validate_only:
        _set_levels(context, outcomes)
    records = [outcome.record for outcome in outcomes if outcome.record is not None]
    if validate_only or (not records and not broker.store.has_pending):
        return respond(outcomes)
    write = ConfigWrite(context, outcomes, respond)
    context.operation = write
    write.note_changes(broker.store.latest, context, records)
    propose_or_wait(broker, records, write)
    return None


def _set_levels(context: RequestContext, outcomes: list[ConfigOutcome]) -> None:
    for outcome in outcomes:
        if outcome.resource_type == RESOURCE_BROKER_LOGGER and outcome.error_code == errors.NONE:
            before = loggers.levels()
            loggers.set_levels(outcome.changes)
            changed = changes_told.changed_text(before, loggers.levels())
            lines = [f"levels of loggers changed: {changed}"] if changed else []
            changes_told.tell(lines, changes_told.asker(context), errors.NONE)


def _decide(broker: Broker, outcomes: list[ConfigOutcome], *, is_whole: bool) -> None:
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
            outcome.record = _record(broker, outcome, is_whole=is_whole)
        except ConfigRefusal as refusal:
            outcome.refuse(refusal.error_code, refusal.message)


def _record(broker: Broker, outcome: ConfigOutcome, *, is_whole: bool) -> MetadataRecord | None:
    view, settings = broker.store.latest, broker.settings
    name, changes = outcome.name, outcome.changes
    kind = outcome.resource_type
    if kind == RESOURCE_TOPIC:
        return decide_change_topic(view, name, changes, settings, is_whole=is_whole)
    if kind == RESOURCE_BROKER:
        return decide_change_broker(view, name, changes, settings, is_whole=is_whole)
    if kind == RESOURCE_BROKER_LOGGER and not is_whole:
        check_form(changes)
        loggers.check(name, changes, settings)
    elif kind == RESOURCE_CLIENT_METRICS:
        _refuse_all(name, changes, "client metrics", "client metrics are not collected")
    elif kind == RESOURCE_GROUP:
        _refuse_all(name, changes, "a group", "the new group protocols are not there yet")
    else:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, f"settings of resource type {kind} cannot be changed so"
        )
    return None


def _refuse_all(name: str, changes: list[Change], kind: str, reason: str) -> None:
    """Resources that Kafka has settings for and Tarry none: only to unset one is no mistake."""
    check_form(changes)
    if not name:
        raise ConfigRefusal(errors.INVALID_REQUEST, f"{kind} must be named")
    for key, operation, _ in changes:
        if operation != DELETE:
            raise ConfigRefusal(
                errors.INVALID_CONFIG, f"{key[:80]!r} of {kind} cannot be set: {reason}"
            )
