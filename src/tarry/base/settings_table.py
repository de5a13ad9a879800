"""The settings that Tarry honours: Kafka's keys, types, defaults and ranges, and a few of ours.

The notation is that of `setting`.  Keys without effect are in `settings_ignored`.
"""

from __future__ import annotations

from typing import Final

HONOURED_TABLE: Final = """
flush.policy                       string  commit      commit|os tarry
    commit: a record is acknowledged and readable after it is flushed to the disk; no crash loses
    it. os: a record is acknowledged when it is in the page cache, as in Kafka; a loss of power may
    lose it.
logging.format                     string  text        text|json tarry
    Form of the log lines on standard error.
logging.level                      string  info        debug|info|warning|error tarry
    The least severe line that is written.

events.enable                      boolean false       tarry
    The broker tells in the topic __tarry_events what it does: waits, rebalances, lag. The topic
    keeps the last 64 MB.
events.interval.ms                 int     10000       100.. tarry
    The broker appends to __tarry_events so often, if anything has happened. It has an effect only
    with events.enable=true.

node.id                            int     1           0..
    The broker's id; a client sees it in the metadata.
broker.id                          int     -1
    Older name of node.id; used if node.id is not given.
broker.rack                        string  -
    Rack or zone of the broker, told to clients in the metadata.

metadata.store                     string  embedded    tarry
    Where topics, settings and leaders are kept. embedded: in the broker's own log directory, for
    one broker. etcd://host:2379,host:2379/prefix: in etcd, for all brokers that name the same
    prefix; they are one cluster. etcds:// in place of etcd:// is by TLS.
metadata.store.ssl.ca.location     string  -           tarry
    Only with etcds://: PEM file of the authorities of etcd's certificate; without it those of the
    system.
metadata.store.ssl.certificate.location string -       tarry
    Only with etcds://: PEM file of the certificate that is shown to etcd, if it asks for one.
metadata.store.ssl.key.location    string  -           tarry
    Only with etcds://: PEM file of that certificate's key; without it both are in one file.
metadata.store.credentials.location string -           tarry
    Only with etcd: file with one line user:password, a user of etcd. Let nobody else read it.
broker.session.timeout.ms          int     6000        2000..
    Only with etcd: a broker from which etcd hears nothing for so long counts as dead.
broker.heartbeat.interval.ms       int     1500        100..
    Only with etcd: the broker tells etcd so often that it lives.
auto.leader.rebalance.enable       boolean true
    Only with etcd: a partition goes back to its first replica once that is in sync again.
leader.imbalance.check.interval.seconds long 300       1..
    Only with etcd: a broker looks so often for partitions that it should lead.
leader.imbalance.per.broker.percentage int 10          0..
    Only with etcd: partitions go back to a broker when others lead more than this percentage of
    those that it should lead.
unclean.leader.election.enable     boolean false dynamic
    Only with etcd: a replica that is not in sync may lead once no replica in sync has lived for ten
    seconds. Acknowledged records may be lost by it.

replica.fetch.max.bytes            int     1048576     0..
    Only with etcd: so many bytes of one partition a follower asks its leader for at once; a larger
    batch comes whole.
replica.fetch.response.max.bytes   int     10485760    0..
    Only with etcd: so many bytes of all partitions together.
replica.fetch.wait.max.ms          int     500
    Only with etcd: a leader answers a follower for which it has nothing after so long.
replica.fetch.min.bytes            int     1
    Only with etcd: a leader that has less for a follower waits for more.
replica.fetch.backoff.ms           int     1000        0..
    Only with etcd: a follower waits so long before it asks again after a failure.
replica.socket.timeout.ms          int     30000
    Only with etcd: a leader that has not answered a follower after so long counts as gone.
follower.replication.throttled.rate long   9223372036854775807 0.. dynamic
    Only with etcd: bytes a second that replicas which are far behind, or not in sync, take from
    each leader.

listeners                          list    PLAINTEXT://127.0.0.1:9092
    Addresses to listen on, NAME://host:port, separated by commas; port 0 takes a free one.
advertised.listeners               list    -
    Addresses told to clients, by listener name; without it, those of listeners.
listener.security.protocol.map     string  PLAINTEXT:PLAINTEXT,SSL:SSL,\
SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
    Security protocol of each listener name; only PLAINTEXT can be used.
inter.broker.listener.name         string  -
    Only with etcd: the listener through which brokers reach each other, the same name at all of
    them. Without it: the first of listeners.
controller.listener.names          list    -
    Listeners of KRaft's controller; they are not opened, since Tarry has none.

log.dirs                           list    -
    Directory of all data; only one. If it is not set: log.dir; if that is not set: ./tarry-data.
log.dir                            list    -
    Older name of log.dirs.

socket.request.max.bytes           int     104857600   1..
    A request frame larger than this closes its connection.
queued.max.request.bytes           long    -1
    Bytes of requests that may have arrived and not be handled yet, of all connections together.
    Past half of it, connections that hold more than their share are read in turns. At least
    socket.request.max.bytes; -1: 512 MiB, or twice socket.request.max.bytes if that is more.
socket.send.buffer.bytes           int     102400      -1..
    The kernel's send buffer of a connection; -1 leaves it to the system.
socket.receive.buffer.bytes        int     102400      -1..
    The kernel's receive buffer of a connection; -1 leaves it to the system.
socket.listen.backlog.size         int     50          1..
    Connections that the kernel holds before they are accepted.
connections.max.idle.ms            long    600000
    A connection without a request for longer than this is closed; negative: never.
max.connection.creation.rate       int     2147483647  0.. dynamic
    New connections a second, of all listeners together; more wait to be accepted. The brokers'
    own listener is not held up, if there are others.
max.connections                    int     2147483647  0.. dynamic
    Connections at the same time; more are closed at once.
max.connections.per.ip             int     2147483647  0.. dynamic
    Connections at the same time from one address; addresses of one IPv6 /64 are one.
max.connections.per.ip.overrides   string  "" dynamic
    Exceptions from max.connections.per.ip, address:number, separated by commas.

auto.create.topics.enable          boolean true
    A topic that does not exist is created with the broker's defaults when a client asks for it,
    unless the client forbids it.
delete.topic.enable                boolean true
    Topics may be deleted.
num.partitions                     int     1           1..
    Partitions of a new topic, if the client names no number.
default.replication.factor         int     1
    Replicas of a new topic, if the client names no number.
min.insync.replicas                int     1           1.. dynamic
    Replicas that must be in sync for a produce with acks=all.
replica.lag.time.max.ms            long    30000
    Only with etcd: a replica that has not had all that its leader has for so long is no longer in
    sync.

message.max.bytes                  int     1048588     0.. dynamic
    Largest record batch that a topic accepts.
max.decompressed.message.bytes     int     2147483639  1..2147483639 dynamic
    Largest record that a topic accepts in a compressed batch, decompressed. Below the default the
    broker decompresses every such batch, 16 MiB of it at most, and refuses one that is larger.
compression.type                   string  producer    uncompressed|zstd|lz4|snappy|gzip|producer \
dynamic
    How record batches are stored. producer: as the producer compressed them. Every other value:
    the broker compresses them again in that form.
compression.gzip.level             int     -1          -1|1..9 dynamic
    How hard gzip tries when the broker compresses a batch (compression.type=gzip); -1: gzip's
    own default.
compression.lz4.level              int     9           1..17 dynamic
    Like compression.gzip.level, for lz4. 9 is the fast form, as in Kafka; every other level is
    slower and makes smaller batches.
compression.zstd.level             int     3           -131072..22 dynamic
    Like compression.gzip.level, for zstd. A level above 9 counts as 9, because a slower one
    would delay all other requests.
log.flush.interval.messages        long    9223372036854775807 1.. dynamic
    For flush.policy=os: a flush begins when this many records are not flushed. 1: a record is
    acknowledged after its flush, as with flush.policy=commit.
log.segment.bytes                  int     1073741824  1048576.. dynamic
    A log begins a new segment when the next batch would make it larger than this.
log.roll.ms                        long    - dynamic behind=log.roll.hours*3600000
    A log begins a new segment when its records span more than this time. If it is not set:
    log.roll.hours.
log.roll.hours                     int     168         1..
    Like log.roll.ms, in hours.
log.roll.jitter.ms                 long    - dynamic behind=log.roll.jitter.hours*3600000
    Largest random time by which log.roll.ms is shortened, so that not all logs begin a segment
    at once. If it is not set: log.roll.jitter.hours.
log.roll.jitter.hours              int     0           0..
    Like log.roll.jitter.ms, in hours.
log.index.interval.bytes           int     4096        0.. dynamic
    Bytes of a segment between two entries of its offset index.
log.index.size.max.bytes           int     10485760    4.. dynamic
    Largest offset index of a segment. When it is full, the log begins a new segment.
log.message.timestamp.type         string  CreateTime  CreateTime|LogAppendTime dynamic
    The time in a record. CreateTime: the producer's. LogAppendTime: the broker's.
log.message.timestamp.before.max.ms long   9223372036854775807 0.. dynamic
    How far behind the broker's clock a record's timestamp may lie.
log.message.timestamp.after.max.ms long    3600000     0.. dynamic
    How far ahead of the broker's clock a record's timestamp may lie.

log.retention.bytes                long    -1 dynamic
    The oldest segments of a partition larger than this are deleted; -1: no limit.
log.retention.ms                   long    - \
dynamic behind=log.retention.minutes*60000,log.retention.hours*3600000
    A segment whose newest record is older than this is deleted; -1: never. If it is not set:
    log.retention.minutes.
log.retention.minutes              int     -
    Like log.retention.ms, in minutes. If it is not set: log.retention.hours.
log.retention.hours                int     168
    Like log.retention.ms, in hours.
log.retention.check.interval.ms    long    300000      1..
    How often the broker looks for segments to delete.
log.segment.delete.delay.ms        long    60000       0.. dynamic
    How long the files of a deleted segment are kept.

log.cleanup.policy                 list    delete      compact|delete dynamic
    delete: old segments are deleted. compact: only the last record of every key is kept.
    compact,delete: both are done.
log.cleaner.backoff.ms             long    15000       0.. dynamic
    How long compaction waits after it found no log that is dirty enough.
log.cleaner.dedupe.buffer.size     long    134217728 dynamic
    Memory for the keys of the log that is being compacted. If they need more, compaction takes
    several passes.
log.cleaner.delete.retention.ms    long    86400000    0.. dynamic
    How long a compacted log keeps a tombstone (a record without value), so that slow readers
    see it.
log.cleaner.max.compaction.lag.ms  long    9223372036854775807 1.. dynamic
    A record older than this is compacted, even if its log is not dirty enough.
log.cleaner.min.cleanable.ratio    double  0.5         0..1 dynamic
    A log is compacted when at least this share of its bytes is not compacted yet.
log.cleaner.min.compaction.lag.ms  long    0           0.. dynamic
    A record younger than this is not removed by compaction.

group.initial.rebalance.delay.ms   int     3000
    How long the first members of an empty group wait for others to join.
group.max.session.timeout.ms       int     1800000
    Longest session time-out that a member may ask for.
group.max.size                     int     2147483647  1..
    Most members of one group.
group.min.session.timeout.ms       int     6000
    Shortest session time-out that a member may ask for.
offset.metadata.max.bytes          int     4096
    Longest text (metadata) that a client may commit with an offset.
offsets.commit.timeout.ms          int     5000        1..
    How long a commit of offsets may take to become durable before it fails.
offsets.retention.check.interval.ms long   600000      1..
    How often the broker looks for committed offsets to delete.
offsets.retention.minutes          int     10080       1..
    How long a group without members keeps its committed offsets.
offsets.topic.num.partitions       int     50          1..
    Partitions of __consumer_offsets, when it is created.
offsets.topic.replication.factor   short   3           1..
    Replicas of __consumer_offsets, when it is created; never more than there are brokers.
offsets.topic.segment.bytes        int     104857600   1..
    Segment size of __consumer_offsets, when it is created.

delay.pending.total.max.bytes      long    -1          -1.. dynamic tarry
    Most bytes of record batches that wait, in topics with delay.enable, in all partitions that this
    broker leads; -1: no limit. A batch that would go beyond is refused. From nine tenths of it on,
    answers to producers ask for pauses.
fetch.max.bytes                    int     57671680    1024..
    Most bytes in the answer to one fetch, even if the client allows more.
max.request.partition.size.limit   int     2000        1..
    Most partitions in one answer to DescribeTopicPartitions.
producer.id.expiration.ms          int     86400000    1.. dynamic
    The state of an idempotent producer is deleted when it has written nothing for longer than
    this.
producer.id.expiration.check.interval.ms int 600000    1..
    How often the broker looks for such producers.
transaction.max.timeout.ms         int     900000      1..
    Longest time-out that a transactional producer may ask for.
producer.purgatory.purge.interval.requests int 1000
    How many completed produce requests may stay in the purgatory before it is cleaned.
fetch.purgatory.purge.interval.requests int 1000
    How many completed fetch requests may stay in the purgatory before it is cleaned.
"""

# Keys whose other values ask for something that Tarry lacks and must not ignore in silence.
DEFAULT_ONLY_TABLE: Final = """
authorizer.class.name              string  ""
    Tarry has no access control yet.
remote.log.storage.system.enable   boolean false
    There is no tiered storage.
"""

GONE_TABLE: Final = """
port                               int     -
    Kafka 3.0 removed it; write listeners=PLAINTEXT://host:port.
host.name                          string  -
    Kafka 3.0 removed it; write listeners=PLAINTEXT://host:port.
advertised.port                    int     -
    Kafka 3.0 removed it; write advertised.listeners=PLAINTEXT://host:port.
advertised.host.name               string  -
    Kafka 3.0 removed it; write advertised.listeners=PLAINTEXT://host:port.
"""
