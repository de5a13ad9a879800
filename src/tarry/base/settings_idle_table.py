"""Kafka's keys without effect that may be changed while a broker runs: type, default and range.

A change of such a key is accepted, kept and described as by Kafka, so that programs which set it
work; a line in the log says that it has no effect, and `settings_ignored` why.  Kafka's other
dynamic keys without effect are left out on purpose: passwords, which must not be kept where all may
read them, and names of classes, of listeners and of directories, whose effect a user would miss.

The notation is that of `setting`, without sentences.
"""

from __future__ import annotations

from typing import Final

IDLE_TABLE: Final = """
background.threads                           int     10          1..
errors.deadletterqueue.auto.create.topics.enable boolean false
errors.deadletterqueue.topic.name.prefix     string  dlq.
follower.fetch.last.tiered.offset.enable     boolean false
group.consumer.assignment.interval.ms        int     1000        0..
group.coordinator.cached.buffer.max.bytes    int     1048588     524288..
group.share.assignment.interval.ms           int     1000        0..
group.streams.assignment.interval.ms         int     1000        0..
log.cleaner.io.buffer.load.factor            double  0.9
log.cleaner.io.buffer.size                   int     524288      0..
log.cleaner.io.max.bytes.per.second          double  1.7976931348623157E308
log.cleaner.threads                          int     1           0..
log.flush.interval.ms                        long    -
log.local.retention.bytes                    long    -2          -2..
log.local.retention.ms                       long    -2          -2..
log.preallocate                              boolean false
log.remote.copy.lag.bytes                    long    -1          -1..
log.remote.copy.lag.ms                       long    0           -1..
num.io.threads                               int     8           1..
num.network.threads                          int     3           1..
num.recovery.threads.per.data.dir            int     2           1..
num.replica.fetchers                         int     1           1..
remote.fetch.max.wait.ms                     int     500         1..
remote.list.offsets.request.timeout.ms       long    30000       1..
remote.log.index.file.cache.total.size.bytes long    1073741824  1..
remote.log.manager.copier.thread.pool.size   int     10          1..
remote.log.manager.copy.max.bytes.per.second long    9223372036854775807 1..
remote.log.manager.expiration.thread.pool.size int     10          1..
remote.log.manager.fetch.max.bytes.per.second long    9223372036854775807 1..
remote.log.manager.follower.thread.pool.size int     2           1..
remote.log.reader.threads                    int     10          1..
sasl.enabled.mechanisms                      list    GSSAPI
sasl.kerberos.kinit.cmd                      string  /usr/bin/kinit
sasl.kerberos.min.time.before.relogin        long    60000
sasl.kerberos.principal.to.local.rules       list    DEFAULT
sasl.kerberos.service.name                   string  -
sasl.kerberos.ticket.renew.jitter            double  0.05
sasl.kerberos.ticket.renew.window.factor     double  0.8
sasl.login.refresh.buffer.seconds            short   300
sasl.login.refresh.min.period.seconds        short   60
sasl.login.refresh.window.factor             double  0.8
sasl.login.refresh.window.jitter             double  0.05
sasl.mechanism.inter.broker.protocol         string  GSSAPI
share.coordinator.cached.buffer.max.bytes    int     1048588     524288..
ssl.cipher.suites                            list    ""
ssl.client.auth                              string  none        required|requested|none
ssl.enabled.protocols                        list    TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm        string  https
ssl.keymanager.algorithm                     string  SunX509
ssl.keystore.location                        string  -
ssl.keystore.type                            string  JKS
ssl.protocol                                 string  TLSv1.3
ssl.provider                                 string  -
ssl.secure.random.implementation             string  -
ssl.trustmanager.algorithm                   string  PKIX
ssl.truststore.location                      string  -
ssl.truststore.type                          string  JKS
transaction.partition.verification.enable    boolean true
"""
