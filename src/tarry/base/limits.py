"""Limits, each with its reason.  What users may set is a setting; its default may be here."""

from __future__ import annotations

from typing import Final

# A frame larger than this is an attack or a bug: Kafka's default of `socket.request.max.bytes`.
FRAME_BYTES_MAX: Final = 100 * 1024 * 1024

# Array elements in one frame, in all its arrays: two bytes on the wire can become an object of a
# hundred.  Metadata of 200,000 partitions with three replicas has 1.4 million.
FRAME_ELEMENTS_MAX: Final = 2_000_000

# Array elements in one request: each becomes an object, and all are decoded in one turn, which
# takes 30 ms.  A commit of 10,000 partitions has 10,001.
REQUEST_ELEMENTS_MAX: Final = 100_000

# Arrays in one request, nested ones included: even an empty one becomes a list.
REQUEST_ARRAYS_MAX: Final = 50_010

# Partitions that a follower names in one fetch, that it forgets in one, and whose log starts it
# asks for at once.  Its leader decodes and answers each in 10 µs, in one turn.
PARTITIONS_PER_FETCH_MAX: Final = 1_000

# Tagged fields in one request, without those of its elements: known versions have at most three,
# newer ones some more.
REQUEST_TAGGED_FIELDS_MAX: Final = 1_000

# Tagged fields that each array element may have: a partition in a follower's fetch has its
# directory, and in a fetch of Kafka's followers its high watermark.
TAGGED_FIELDS_PER_ELEMENT: Final = 2

# Array elements decoded in one turn; beyond it large requests of other connections wait.
ELEMENTS_PER_TURN_MAX: Final = 20_000

# A request with fewer bytes than this is small.  It is handled in the turn in which it arrives,
# until the small requests of all connections have this many elements in the turn: each element may
# be a partition to append to or to commit, which takes 5 µs.
LARGE_REQUEST_BYTES: Final = 16 * 1024
SMALL_ELEMENTS_PER_TURN_MAX: Final = 5_000

# Logs with records in one answer to a fetch of thousands of partitions, to a consumer or a
# follower: to look one up, to read it and to send it takes 15 µs.
FETCHED_LOGS_MAX: Final = 1_000

# Logs that one flush round covers; the others wait for the next: to begin and to end a round takes
# 10 µs for each, with the answers to the requests that wait for it.
FLUSHED_LOGS_PER_ROUND_MAX: Final = 1_000

# Large requests that one turn looks at, one for each connection.
LARGE_REQUESTS_LOOKED_AT: Final = 50

# Size of an answer that is encoded element by element.  Metadata of 200,000 partitions with three
# replicas has 10 MB.  For a larger one the request is refused, or its connection closed.
LONG_ANSWER_BYTES_MAX: Final = 32 * 1024 * 1024

# Size of all answers that are encoded at the same time.  Beyond it they are encoded one after the
# other, and no further large request is decoded.
LONG_ANSWERS_BYTES_MAX: Final = 16 * 1024 * 1024

# Work on long answers in one turn, in units of an element or 64 bytes, which take 5 to 10 µs.
LONG_ANSWER_UNITS_PER_TURN: Final = 500
LONG_ANSWER_BYTES_PER_UNIT: Final = 64

# Units that an answer gets at once, in the turn of its request, so that short ones do not wait; and
# the limit for all requests of a turn together.
LONG_ANSWER_FIRST_UNITS: Final = 100
LONG_ANSWER_FIRST_UNITS_PER_TURN: Final = 1_000

# Longest time from a frame's first byte to its last; a slower peer only trickles bytes.
FRAME_AGE_MS_MAX: Final = 60_000

# Bytes of requests that have arrived and are not handled, of all connections, unless
# `queued.max.request.bytes` is set: five of the largest frames.
QUEUED_BYTES_MAX: Final = 512 * 1024 * 1024

# Time for which a connection that waits for room in that queue is read before it is the next one's
# turn: a frame of 1 MB arrives in a tenth of it.
GRANT_MS: Final = 100

# Connections that are read again in one turn once there is room: 2 ms of system calls.
GRANTS_PER_TURN_MAX: Final = 400

# Shortest time between two lines that say that requests find no room.
PRESSURE_LINE_MS: Final = 60_000

# Bytes of answers that a peer has not taken; beyond it the broker stops reading from that peer.
UNSENT_BYTES_MAX: Final = 16 * 1024 * 1024

# Bytes of answers for one connection in one turn; then other connections come first.  So much
# metadata takes 9 ms to encode.
ANSWER_BYTES_PER_TURN_MAX: Final = 128 * 1024

# Requests of one connection that wait for their answers; beyond it the broker stops reading.
# Java sends 5 at a time, librdkafka up to 1,000,000 by setting but 1,000 in practice.
REQUESTS_IN_FLIGHT_MAX: Final = 1_000

# Unanswered questions of one part of a broker to one other broker; more fail at once.  A part puts
# all that it asks in one turn into one question, so with a hundred it never waits.
QUESTIONS_UNDER_WAY_MAX: Final = 100

# Operations completed in one turn, so that one produce with 10,000 waiting readers does not hold up
# the others: to read, answer and send takes 13 to 25 µs each.
COMPLETIONS_PER_TURN_MAX: Final = 400

# Timer moves in one turn, falls to a lower level included; an expiry costs as much as a completion.
TIMER_MOVES_PER_TURN_MAX: Final = 400

# Pieces of an unfinished frame before they are joined: if a peer sends two bytes at a time, each
# piece takes fifty in memory.
FRAME_PIECES_MAX: Final = 256

# Longest sleep of the poll, so that a stop or a clock jump is noticed.
POLL_MS_MAX: Final = 500

# A turn that begins this much later than planned means that the process was stopped.
STALL_MS: Final = 1_000

# Kafka's rule for topic names: a file name must hold name, partition and suffix.
TOPIC_NAME_CHARACTERS_MAX: Final = 249

# Records that an answer names as reasons why their batch was refused; clients show a few.
RECORD_ERRORS_MAX: Final = 100

# Size to which a compressed batch may be decompressed if a setting needs its records: sixteen times
# the default of `max.message.bytes`.  It takes some 30 ms, so few batches are opened in a turn.
OPENED_BATCH_BYTES_MAX: Final = 16 * 1024 * 1024
OPENED_BATCHES_PER_TURN_MAX: Final = 2

# Batches of one produce that were recompressed for compression.type, or opened for their due times,
# and wait to be appended together: a frame of compressed zeros could grow a hundredfold.
RECOMPRESSED_REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
# Bytes of such batches that all produces in shares hold together while they wait for flushes.  At
# this size no further produce in shares begins, so the total is at most this and one more.
RECOMPRESSED_HELD_BYTES_MAX: Final = 64 * 1024 * 1024

# Time for which one of them holds its batches while logs do not move, and others may wait for the
# room.  It appends the rest then, however many logs are to be flushed.
RECOMPRESSED_HELD_MS_MAX: Final = 5_000

# Idempotent producers known in a partition.  Beyond it, producers of the connection with most are
# forgotten first, then those that wrote once, then those inactive for longest.
# Guards against clients that take a new producer id for every request: 4 MB and, for the snapshot
# that a recovery point writes in a turn, 2.5 ms.
PRODUCER_IDS_PER_PARTITION_MAX: Final = 4_000

# Metadata of one group: members' protocols, assignments, texts of offsets.  2,000 members that read
# 200 topics each have 12 MB; the record of a generation holds 1 MB of it.
GROUP_METADATA_BYTES_MAX: Final = 16 * 1024 * 1024

# Partitions that one request may create: each needs a directory and files, made in one turn.
# Kafka's controller has the same limit.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000

# Topics that one host may create in a minute by asking for their metadata: each is a directory with
# files, which stays until a user deletes it.  CreateTopics is for more.
TOPICS_AUTO_CREATED_PER_MINUTE_MAX: Final = 1_000

# Resources whose settings one request may change: all are decided in one turn.
RESOURCES_PER_REQUEST_MAX: Final = 10_000

# Users whose credentials one request may ask for: each gets a sentence in the answer.
USERS_PER_REQUEST_MAX: Final = 10_000

# Protocols of a member: its client offers one for each of its assignors, of which there are five.
# Those of all members are compared when a join phase ends.
PROTOCOLS_PER_MEMBER_MAX: Final = 100

# Settings of one resource that one request may change: there are 400 in all.
SETTINGS_PER_RESOURCE_MAX: Final = 1_000

# Groups that may have settings of their own.  Each takes a row of the metadata, even if the group
# does not exist.
GROUPS_WITH_SETTINGS_MAX: Final = 10_000

# Size of a group's id with the names and values of its settings: all names together take 700 bytes.
# The rows of all groups then stay below 40 MiB.
GROUP_SETTINGS_BYTES_MAX: Final = 4 * 1024

# Topics or resources in one change of the metadata, and their partitions or settings together: a
# change is decided, applied and hosted in one turn.
TOPICS_PER_CHANGE_MAX: Final = 200
PARTITIONS_PER_CHANGE_MAX: Final = 20_000

# Producer ids reserved at once in the metadata, as many as a crash can waste.  Kafka's block size.
PRODUCER_IDS_PER_RESERVATION: Final = 1_000

# Exceptions below the watermark of a checkpoint of scheduled records: records that are pending
# although one due later was released, because they were parked in the last moments.  A checkpoint
# that needs more is not written, and an earlier one stays in force.
CHECKPOINT_EXCEPTIONS_MAX: Final = 10_000

# Watermarks of a checkpoint: one, and one for each time that a clock was set back and has not
# caught up yet.
CHECKPOINT_WATERMARKS_MAX: Final = 16

# The latest time at which a record may be due: the end of the year 9999, the last one that RFC 3339
# can write.
DUE_MS_MAX: Final = 253_402_300_799_999

# Due times and ids of one batch: all are parked in one turn.
SCHEDULE_PLACES_MAX: Final = 10_000

# Bytes of opened batches in memory, whose records are released one by one: eight of the default of
# `max.message.bytes`.  A single larger batch is kept alone.
OPENED_BODIES_BYTES_MAX: Final = 8 * 1024 * 1024

# Size of a note about scheduled records.  A checkpoint with all its exceptions has 80,000 bytes;
# the note of a batch has its ids, and 14 bytes for each due time.
SCHEDULE_NOTE_BYTES_MAX: Final = 4 * 1024 * 1024

# Length of an id of a scheduled record; the ids of all pending records are in memory.
SCHEDULE_ID_BYTES_MAX: Final = 1024

# Headers of a record that are searched for its due time and id: one header takes two bytes in a
# batch, and almost none in a compressed one.
SCHEDULE_HEADERS_MAX: Final = 1_000

# Recurring records of one partition.  Each checkpoint lists all of them, with 24 bytes each.
RECURRING_RECORDS_MAX: Final = 10_000

# Recurring records in a checkpoint.  One that needs more is not written: lost cancels may have
# brought some back.
CHECKPOINT_RECURRING_MAX: Final = 20_000

# Releases of one recurring record under way: months of missed instances come in portions.
INSTANCES_UNDER_WAY_MAX: Final = 100

# Parsed cron expressions in memory: some 50 KB each at most.
CRONS_KEPT_MAX: Final = 64

# Checkpoints of one leader epoch that a start remembers while it reads them.  The last one counts,
# except after an unclean election.
CHECKPOINTS_KEPT_PER_EPOCH: Final = 16

# Releases that a partition remembers, to answer a cancel that comes too late: half a megabyte
# without ids.
SCHEDULE_RELEASED_KEPT: Final = 4_096

# Entries of a page of pending records in one partition, and buckets of a histogram.
SCHEDULE_PAGE_ENTRIES_MAX: Final = 10_000
SCHEDULE_BUCKETS_MAX: Final = 1_000

# Sentences kept about unreadable parts of a companion log at a start; further ones are counted.
SCHEDULE_FLAWS_KEPT: Final = 20

# Two brokers' calendars that are further apart than this are worth a warning.  Time synchronisation
# keeps them within some ms; a network that holds answers up for long looks like a clock behind.
CALENDARS_APART_MS_MAX: Final = 1_000
