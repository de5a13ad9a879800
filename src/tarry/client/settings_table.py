"""Settings of our clients: Kafka's keys, types, defaults and ranges, and a few of ours.

The notation is the one of `base/setting`.  A duration (a key that ends with `.ms`) may also be
given as text such as `"30s"`.
"""

from __future__ import annotations

from typing import Final

COMMON_TABLE: Final = """
bootstrap.servers                  string  127.0.0.1:9092
    Addresses of brokers for the first connection, host:port, separated by commas.
client.id                          string tarry
    Name of this client in the broker's log.
security.protocol                  string  PLAINTEXT   PLAINTEXT
    Security protocol of every connection; only PLAINTEXT, because there is no TLS and no SASL yet.
request.timeout.ms                 int     30000       1..
    Longest wait for the answer to one request.
socket.connection.setup.timeout.ms int     10000       1..
    Longest attempt to connect.
connections.max.idle.ms            long    540000      -1..
    Time without a request or an answer after which a connection is closed, and made anew when it is
    needed; -1: never. A client that nobody uses meanwhile does so in its next call.
reconnect.backoff.ms               int     50          0..
    Pause after a failed connection; each further failure doubles it.
reconnect.backoff.max.ms           int     1000        0..
    Longest pause after a failed connection.
retry.backoff.ms                   int     100         0..
    Pause after a failed request; each further failure doubles it.
retry.backoff.max.ms               int     1000        0..
    Longest pause after a failed request.
metadata.max.age.ms                int     300000      1..
    Age at which the client asks for metadata again.
default.api.timeout.ms             int     60000       1..
    Longest call without a timeout of its own.
allow.auto.create.topics           boolean true
    The broker may create a topic that the client asks for.
close.timeout.ms                   int     5000        0.. tarry
    Longest time that `close` takes.
send.buffer.bytes                  int     -1          -1..
    Size of the kernel's send buffer of a socket; -1: the system decides.
receive.buffer.bytes               int     -1          -1..
    Size of the kernel's receive buffer of a socket; -1: the system decides.
"""

PRODUCER_TABLE: Final = """
acks                               string  all         all|-1|0|1
    Replicas that must have a record before it is acknowledged; 0: the broker sends no answer.
enable.idempotence                 boolean true
    A retry stores no record twice.  Where acks is not all, or more than five requests are in
    flight, it is off unless it is set, and the log says so.
linger.ms                          int     5           0..
    Time that a batch waits for more records.
batch.size                         int     16384       0..104857600
    Largest batch in bytes; a full batch is sent at once.
buffer.memory                      long    33554432    1024..1099511627776
    Memory in bytes for records that are not acknowledged yet.
compression.type                   string  none        none|gzip|snappy|lz4|zstd
    How the producer compresses batches.
compression.gzip.level             int     -1          -1|1..9
    Level of gzip where compression.type names it; -1 is the library's own, about 6.
compression.lz4.level              int     9           1..17
    Level of lz4 where compression.type names it. 9 is the fast form, as in Kafka; every other level
    is one of high compression, 12 and more the highest.
compression.zstd.level             int     3           -131072..22
    Level of zstd where compression.type names it. Negative levels are faster and compress less.
partitioner                        string  murmur2     murmur2|crc32 tarry
    What chooses the partition of a record that names none: `murmur2` of the key, as Java does;
    `crc32`, as librdkafka's `consistent_random` does; or a function of topic, key and number of
    partitions, which returns the partition. Records without a key share a partition until its batch
    is full.
max.request.size                   int     1048576     1..
    Largest record and request, in bytes.
max.block.ms                       int     60000       0..
    Longest time that `send` waits for room or metadata.
delivery.timeout.ms                int     120000      1..
    Longest time between `send` and the acknowledgement; after it the record has failed.
max.in.flight.requests.per.connection int     5           1..
    Most requests of a connection without an answer; a broker recognizes 5 retried batches.
"""

CONSUMER_TABLE: Final = """
fetch.min.bytes                    int     1           0..
    Bytes that the broker waits for before it answers a fetch.
fetch.max.wait.ms                  int     500         0..
    Longest time that the broker waits for fetch.min.bytes.
fetch.max.bytes                    int     52428800    1..209715200
    Most bytes in one answer, and most bytes that the consumer reads ahead.
max.partition.fetch.bytes          int     1048576     1..209715200
    Most bytes of one partition in an answer.
max.poll.records                   int     500         1..
    Most records that one `poll` returns.
auto.offset.reset                  string  latest
    Where a partition begins if it has no committed offset, or one that the log does not have:
    latest, earliest, none (an error), or by_duration:PT1H, so long ago.
isolation.level                    string  read_uncommitted read_uncommitted|read_committed
    With read_committed only records of committed transactions come, and none behind an open one.
client.rack                        string  ""
    Rack of this consumer: brokers name replicas in it, leaders of groups assign what has one there.
exclude.internal.topics            boolean true
    A pattern finds no internal topic, such as __consumer_offsets.
group.id                           string  ""
    Consumer group. Its members share the partitions, and it keeps their offsets.
group.instance.id                  string  ""
    Name of a static member. A restart under the same name causes no rebalance.
session.timeout.ms                 int     45000       1..
    The group removes a member that sends no heartbeat for longer than this.
heartbeat.interval.ms              int     3000        1..
    Time between two heartbeats of a member.
heartbeat.mode                     string  thread      thread|poll tarry
    What sends heartbeats: a thread of the consumer, or `poll`.
heartbeat.ramp                     boolean true tarry
    After a rebalance the first heartbeats come sooner: 100 ms, 200 ms, ...
max.poll.interval.ms               int     300000      1..
    A member that does not call `poll` for longer than this leaves the group.
partition.assignment.strategy      string  range,cooperative-sticky
    Assignors that the member supports, the preferred one first: range, roundrobin, sticky or
    cooperative-sticky.
enable.auto.commit                 boolean true
    The consumer commits the offsets of finished records by itself.
auto.commit.interval.ms            int     5000        1..
    Time between two automatic commits.
"""
