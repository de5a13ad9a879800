"""Checkers of leader epochs: they never go back, grow over an unclean stop, know their ends."""

from __future__ import annotations

from tarry.simulation.clients.history import Place, RunHistory, place_name


def check_leader_epochs(history: RunHistory) -> list[str]:
    """Check that leader epochs never go back, and grow over an unclean stop of the broker."""
    sentences: list[str] = []
    last: dict[Place, tuple[int, int]] = {}
    ordered = sorted(history.metadata, key=lambda seen: seen.exchange.delivered_turn)
    for seen in ordered:
        for topic in seen.topics:
            for index, epoch in topic.epochs:
                place = (topic.topic_id, index)
                known = last.get(place)
                if known is not None:
                    known_epoch, known_life = known
                    crashes = [
                        life for life in history.unclean_lives if known_life <= life < seen.life
                    ]
                    if epoch < known_epoch:
                        sentences.append(
                            f"the leader epoch of {place_name(place)} went back from "
                            f"{known_epoch} to {epoch}"
                        )
                    elif crashes and epoch <= known_epoch:
                        sentences.append(
                            f"the leader epoch of {place_name(place)} is {epoch} before and after "
                            "an unclean stop"
                        )
                last[place] = (epoch, seen.life)
        if sentences:
            break
    return sentences


def check_epoch_ends(history: RunHistory) -> list[str]:
    """Check that an epoch ends behind its own records, and before the records of later epochs.

    A query for an epoch without records is answered with the epoch before it.
    """
    for end in history.epoch_ends:
        if end.epoch < 0 or not end.is_certain:
            continue
        reads = history.reads.get(end.place, {})
        final = history.finals.get(end.place)
        for offset in sorted(reads):
            if final is None or offset < final.log_start_offset:
                # Epochs below the log start are forgotten: the first one kept begins there.
                continue
            epoch = reads[offset].epoch
            if epoch > end.epoch and offset < end.end_offset:
                return [
                    f"epoch {end.epoch} of {place_name(end.place)} is said to end at "
                    f"{end.end_offset}, and offset {offset} is of epoch {epoch}"
                ]
            if epoch <= end.epoch and offset >= end.end_offset:
                return [
                    f"epoch {end.epoch} of {place_name(end.place)} is said to end at "
                    f"{end.end_offset}, and offset {offset} is of epoch {epoch}"
                ]
        last = reads.get(end.end_offset - 1)
        if final is None or last is None or end.end_offset <= final.log_start_offset:
            continue
        if last.epoch < end.epoch and not end.is_newest:
            return [
                f"epoch {end.asked} of {place_name(end.place)} was asked for and {end.epoch} is "
                f"said to end at {end.end_offset}, where nothing was written in it: the record "
                f"before is of epoch {last.epoch}"
            ]
    return []
