"""Changes of settings by clients: the common part of both AlterConfigs APIs.

Every resource of a request has an outcome of its own.  The records of all accepted changes are
durable before the answer, in one batch if the store can take them so.  The levels of loggers are
not metadata: they last until the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final

from tarry.base import errors
from tarry.base.doors import LogLevels
from tarry.base.limits import RESOURCES_PER_REQUEST_MAX, SETTINGS_PER_RESOURCE_MAX
from tarry.base.settings import Settings
from tarry.broker import loggers
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata import changes_told
from tarry.broker.metadata.changes import MetadataChanges, Rows
from tarry.broker.request import RequestContext
from tarry.cluster.configs.config_changes import DELETE, ConfigRefusal, KeyChange, check_form
from tarry.cluster.configs.config_decisions import (
    decide_change_broker,
    decide_change_group,
    decide_change_topic,
)
from tarry.cluster.state.levels import (
    GROUP_CONFIGS,
    SCHEDULED_RECORDS,
    LevelRefused,
    Release,
    decide_use,
    may_delay,
)
from tarry.cluster.state.records import (
    ConfigChanged,
    FeatureLevelChanged,
    GroupConfigChanged,
    MetadataRecord,
)
from tarry.cluster.state.state import ClusterState
from tarry.cluster.store.change import ChangeOfMany
from tarry.protocol.message import Message
from tarry.protocol.pieced import Encodable

# Kafka's types of resources with settings.
RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
RESOURCE_BROKER_LOGGER: Final = 8
RESOURCE_CLIENT_METRICS: Final = 16
RESOURCE_GROUP: Final = 32

# Time-out of these requests, which have none: Kafka's default for a metadata change.
WRITE_TIMEOUT_MS: Final = 30_000

_KEPT: Final = (RESOURCE_TOPIC, RESOURCE_BROKER, RESOURCE_GROUP)

# Checking a change takes so small a part of the unit of work in which long answers count.
CHANGES_PER_UNIT: Final = 20


class ConfigOutcome:
    """Outcome for one resource of a request; `record` is None if its settings do not change."""

    __slots__ = ("changes", "error_code", "message", "name", "record", "resource_type")

    def __init__(self, resource_type: int, name: str, changes: list[KeyChange]) -> None:
        self.resource_type = resource_type
        self.name = name
        self.changes = changes
        self.error_code = errors.NONE
        self.message: str | None = None
        self.record: MetadataRecord | None = None

    def refuse(self, error_code: int, message: str) -> None:
        """Refuse the change of the resource, and note why."""
        self.error_code = error_code
        self.message = message
        self.record = None


class ConfigAlteration(ChangeOfMany[ConfigOutcome]):
    """Change of the settings of some of a request's resources that the metadata store keeps."""

    def __init__(
        self,
        outcomes: list[ConfigOutcome],
        settings: Settings,
        release: Release,
        *,
        is_whole: bool,
    ) -> None:
        super().__init__()
        self.outcomes = outcomes
        self._settings = settings
        self._release = release
        self._is_whole = is_whole

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        # Each resource is decided on the state after those before it: some bounds hold for all
        # together.
        ahead = view.overlay()
        # Records that bring feature levels into force which this request is the first to use.
        begun: list[FeatureLevelChanged] = []
        for outcome in self.outcomes:
            outcome.error_code, outcome.message = errors.NONE, None
            try:
                outcome.record = self._decide_one(ahead, outcome)
                if isinstance(outcome.record, GroupConfigChanged):
                    begun = self._begin(view, begun, GROUP_CONFIGS)
                elif isinstance(outcome.record, ConfigChanged) and may_delay(
                    outcome.record.configs
                ):
                    begun = self._begin(view, begun, SCHEDULED_RECORDS)
                if outcome.record is not None:
                    ahead.apply(outcome.record)
            except ConfigRefusal as refusal:
                outcome.refuse(refusal.error_code, refusal.message)
            except LevelRefused as refusal:
                outcome.refuse(errors.UNSUPPORTED_VERSION, str(refusal))
        return [*begun, *(one.record for one in self.outcomes if one.record is not None)]

    def _begin(
        self, view: ClusterState, begun: list[FeatureLevelChanged], name: str
    ) -> list[FeatureLevelChanged]:
        if any(each.name == name for each in begun):
            return begun
        return [*begun, *decide_use(view, name, self._release)]

    def _decide_one(self, view: ClusterState, outcome: ConfigOutcome) -> MetadataRecord | None:
        name, changes, is_whole = outcome.name, outcome.changes, self._is_whole
        if outcome.resource_type == RESOURCE_GROUP:
            return decide_change_group(view, name, changes, is_whole=is_whole)
        if outcome.resource_type == RESOURCE_BROKER:
            return decide_change_broker(view, name, changes, self._settings, is_whole=is_whole)
        return decide_change_topic(view, name, changes, self._settings, is_whole=is_whole)

    def fail(self, error_code: int, message: str) -> None:
        for outcome in self.outcomes:
            if outcome.record is not None:
                outcome.refuse(error_code, message)


def change_configs(
    changes: MetadataChanges,
    context: RequestContext,
    outcomes: list[ConfigOutcome],
    rows: Rows[ConfigOutcome],
    *,
    is_whole: bool,
    validate_only: bool,
) -> Message | None:
    """Make changes of metadata that `checked` has accepted, as many at a time as the store takes,
    and answer when they are durable.  If `is_whole`, keys without a change are unset.
    """
    to_decide = [
        outcome
        for outcome in outcomes
        if outcome.error_code == errors.NONE and outcome.resource_type in _KEPT
    ]
    view = changes.store.view

    def weight(outcome: ConfigOutcome) -> int:
        # A change writes its keys, and a topic's row in etcd has all its partitions; bounds on the
        # texts of settings keep the rest of a portion small.
        topic = view.topic(outcome.name) if outcome.resource_type == RESOURCE_TOPIC else None
        return max(len(outcome.changes), 0 if topic is None else len(topic.partitions))

    portions = changes.in_portions(
        to_decide, lambda outcome: (outcome.resource_type, outcome.name), weight
    )
    return changes.ask_for_many(
        context,
        [
            ConfigAlteration(portion, changes.settings, changes.store.release, is_whole=is_whole)
            for portion in portions
        ],
        lambda answer, _: rows(answer, outcomes),
        WRITE_TIMEOUT_MS,
        validate_only=validate_only,
    )


def add_rows(
    response: Message,
    make_row: Callable[[int, str | None, int, str], Encodable],
    answer: LongAnswer,
    outcomes: Iterable[ConfigOutcome],
) -> Iterator[int]:
    """Add a row for each outcome to an answer, in steps."""
    answer.open(response)
    for each in outcomes:
        answer.add(make_row(each.error_code, each.message, each.resource_type, each.name))
        yield 1


def set_levels(door: LogLevels, context: RequestContext, outcomes: list[ConfigOutcome]) -> None:
    """Set the levels of the loggers that a request names."""
    for outcome in outcomes:
        if outcome.resource_type == RESOURCE_BROKER_LOGGER and outcome.error_code == errors.NONE:
            before = loggers.levels(door)
            loggers.set_levels(door, outcome.changes)
            changed = changes_told.changed_text(before, loggers.levels(door))
            lines = [f"levels of loggers changed: {changed}"] if changed else []
            changes_told.tell(lines, changes_told.asker(context), errors.NONE, "")


def checked(
    resources: Iterable[tuple[int, str, list[KeyChange]]], settings: Settings, *, is_whole: bool
) -> Generator[int, None, list[ConfigOutcome]]:
    """Return an outcome for each resource, in steps of a long answer.  It is refused if the change
    is wrong without regard to the metadata.
    """
    outcomes: dict[tuple[int, str], ConfigOutcome] = {}
    for resource_type, name, changes in resources:
        before = outcomes.get((resource_type, name))
        if before is not None:
            before.refuse(errors.INVALID_REQUEST, "this resource is named twice")
        else:
            outcomes[resource_type, name] = ConfigOutcome(resource_type, name, changes)
        yield 1 + len(changes) // CHANGES_PER_UNIT
    for outcome in outcomes.values():
        if len(outcomes) > RESOURCES_PER_REQUEST_MAX:
            outcome.refuse(
                errors.POLICY_VIOLATION,
                f"one request changes at most {RESOURCES_PER_REQUEST_MAX} resources",
            )
            yield 1
        elif outcome.error_code == errors.NONE:
            try:
                _check_resource(outcome, settings, is_whole=is_whole)
            except ConfigRefusal as refusal:
                outcome.refuse(refusal.error_code, refusal.message)
            yield 1 + len(outcome.changes) // CHANGES_PER_UNIT
    return list(outcomes.values())


def _check_resource(outcome: ConfigOutcome, settings: Settings, *, is_whole: bool) -> None:
    name, changes = outcome.name, outcome.changes
    kind = outcome.resource_type
    if len(changes) > SETTINGS_PER_RESOURCE_MAX:
        raise ConfigRefusal(
            errors.INVALID_REQUEST,
            f"one request changes at most {SETTINGS_PER_RESOURCE_MAX} settings of a resource",
        )
    if kind == RESOURCE_BROKER_LOGGER and not is_whole:
        check_form(changes)
        loggers.check(name, changes, settings)
    elif kind == RESOURCE_CLIENT_METRICS:
        _refuse_client_metrics(name, changes)
    elif kind not in _KEPT:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, f"settings of resource type {kind} cannot be changed so"
        )


def _refuse_client_metrics(name: str, changes: list[KeyChange]) -> None:
    """Refuse a change of client metrics: Tarry has no such settings.  Unsetting one is accepted."""
    check_form(changes)
    if not name:
        raise ConfigRefusal(errors.INVALID_REQUEST, "client metrics must be named")
    for key, operation, _ in changes:
        if operation != DELETE:
            raise ConfigRefusal(
                errors.INVALID_CONFIG,
                f"{key[:80]!r} of client metrics cannot be set: client metrics are not collected",
            )
