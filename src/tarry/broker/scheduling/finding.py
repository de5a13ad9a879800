"""Finding of the schedule that a client asks for; an error code says why there is none."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.state.topic_names import name_fault
from tarry.schedule.state import ScheduleState

_WHY_MISSING: Final = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: "there is no",
    errors.NOT_LEADER_OR_FOLLOWER: "another broker leads",
    errors.KAFKA_STORAGE_ERROR: "the disk has refused the log of",
}


class FoundSchedule:
    """Schedule of a partition with its state, or an error code and a sentence."""

    def __init__(self, error_code: int, message: str | None) -> None:
        self.error_code = error_code
        self.message = message
        self.schedule: PartitionSchedule | None = None
        self.state: ScheduleState | None = None


def find_schedule(topics: Topics, scheduling: Scheduling, name: str, index: int) -> FoundSchedule:
    """Find the schedule of a partition that is led here."""
    fault = name_fault(name)
    if fault:
        return FoundSchedule(errors.INVALID_TOPIC_EXCEPTION, fault)
    hosted = topics.get(name)
    partition = None if hosted is None else hosted.partition(index)
    if partition is None:
        code = missing_code(hosted, index)
        return FoundSchedule(code, f"{_WHY_MISSING[code]} partition {index} of a topic '{name}'")
    leadership = partition.leadership
    if not leadership.may_act():
        sentence = f"another broker may lead {partition.name} by now"
        return FoundSchedule(errors.NOT_LEADER_OR_FOLLOWER, sentence)
    schedule = scheduling.get(leadership)
    if schedule is None and not partition.config.has_delay:
        sentence = f"no record of '{name}' has ever waited: the topic has no delay.enable=true"
        return FoundSchedule(errors.INVALID_REQUEST, sentence)
    if schedule is None:
        sentence = f"the log of the scheduled records of {partition.name} could not be made yet"
        return FoundSchedule(errors.KAFKA_STORAGE_ERROR, sentence)
    if schedule.refusal:
        return FoundSchedule(errors.KAFKA_STORAGE_ERROR, schedule.refusal)
    if schedule.state is None:
        sentence = f"what waits in {partition.name} is being read; ask again"
        return FoundSchedule(errors.COORDINATOR_LOAD_IN_PROGRESS, sentence)
    found = FoundSchedule(errors.NONE, None)
    found.schedule = schedule
    found.state = schedule.state
    return found
