/*
 * Apache Kafka's purgatory under the loads that bench/purgatory.py drew.
 *
 *     PurgatoryBench load SAMPLES force|keys BARE(true|false)
 *     PurgatoryBench micro OPERATIONS REPEATS
 *
 * Prints one line of JSON.  "load" follows Kafka's TestPurgatoryPerformance: one thread makes the
 * requests at their arrivals, another completes them when their drawn latency is over, the
 * purgatory's own threads expire the rest.  "bare" leaves the purgatory out: what remains is what
 * the load itself costs.
 */

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationKey;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.purgatory.TopicPartitionOperationKey;
import org.apache.kafka.server.util.timer.SystemTimer;

public final class PurgatoryBench {
    static final long MS = 1_000_000L;
    static final int PURGE_INTERVAL = 1000;
    static final int WARM_UP = 20_000;

    // Java's compiler comes in late: Python has one round.
    static final int WARM_UP_ROUNDS = 3;
    static final int MICRO_KEYS = 1024;
    static final long MICRO_TIMEOUT_MS = 600_000;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("load")) {
            Samples samples = Samples.read(Path.of(arguments[1]));
            boolean byKey = arguments[2].equals("keys");
            boolean bare = Boolean.parseBoolean(arguments[3]);
            for (int round = 0; round < WARM_UP_ROUNDS; round++) {
                new Load(samples.warmUp(), byKey, bare).run();
            }
            System.gc();
            System.out.println(new Load(samples, byKey, bare).run());
        } else {
            int operations = Integer.parseInt(arguments[1]);
            int repeats = Integer.parseInt(arguments[2]);
            System.out.println(new Micro(operations).run(repeats));
        }
        System.exit(0);
    }

    static DelayedOperationPurgatory<DelayedOperation> newPurgatory() {
        return new DelayedOperationPurgatory<>(
            "bench", new SystemTimer("bench"), 0, PURGE_INTERVAL, true, true);
    }

    static String json(Map<String, Object> fields) {
        fields.put("version", "Apache Kafka " + AppInfoParser.getVersion() + ", Java " + Runtime.version());
        StringBuilder text = new StringBuilder("{");
        fields.forEach((name, value) -> {
            String shown = value instanceof String ? "\"" + value + "\"" : String.valueOf(value);
            text.append(text.length() > 1 ? ", " : "").append('"').append(name).append("\": ").append(shown);
        });
        return text.append('}').toString();
    }

    record Key(String name) implements DelayedOperationKey {
        @Override
        public String keyLabel() {
            return name;
        }
    }

    /** What bench/purgatory_samples.py wrote. */
    record Samples(long timeoutMs, long[] arrivalMs, long[] latencyMs, List<List<Key>> keys) {
        static Samples read(Path path) throws IOException {
            List<String> lines = Files.readAllLines(path);
            String[] head = lines.get(0).split(" ");
            List<Key> space = new ArrayList<>();
            for (int number = 0; number < Integer.parseInt(head[1]); number++) {
                space.add(new Key("key-" + number));
            }
            int count = lines.size() - 1;
            long[] arrivalMs = new long[count];
            long[] latencyMs = new long[count];
            List<List<Key>> keys = new ArrayList<>(count);
            for (int number = 0; number < count; number++) {
                String[] fields = lines.get(number + 1).split(" ");
                arrivalMs[number] = Long.parseLong(fields[0]);
                latencyMs[number] = Long.parseLong(fields[1]);
                List<Key> mine = new ArrayList<>();
                for (int field = 2; field < fields.length; field++) {
                    mine.add(space.get(Integer.parseInt(fields[field])));
                }
                keys.add(mine);
            }
            return new Samples(Long.parseLong(head[0]), arrivalMs, latencyMs, keys);
        }

        /** The same requests all at once and soon completed, as many as warm a machine up. */
        Samples warmUp() {
            long[] arrivals = new long[WARM_UP];
            long[] latencies = new long[WARM_UP];
            List<List<Key>> warmKeys = new ArrayList<>();
            for (int number = 0; number < WARM_UP; number++) {
                arrivals[number] = number / 100;
                latencies[number] = number % 10;
                warmKeys.add(keys.get(number % keys.size()));
            }
            return new Samples(timeoutMs, arrivals, latencies, warmKeys);
        }
    }

    /** One run of the load. */
    static final class Load {
        private final Samples samples;
        private final boolean byKey;
        private final DelayedOperationPurgatory<DelayedOperation> purgatory;
        private final DelayQueue<Completion> queue = new DelayQueue<>();
        private final CountDownLatch ended;
        private final long[] bornNs;
        private final long[] endedNs;
        private final boolean[] expired;

        Load(Samples samples, boolean byKey, boolean bare) {
            int count = samples.arrivalMs.length;
            this.samples = samples;
            this.byKey = byKey;
            purgatory = bare ? null : newPurgatory();
            ended = new CountDownLatch(count);
            bornNs = new long[count];
            endedNs = new long[count];
            expired = new boolean[count];
        }

        String run() throws Exception {
            var system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            long[] collectionsBefore = collections();
            // In steps of 10 ms, as Linux tells it to Java.
            long cpuBefore = system.getProcessCpuTime();
            long startNs = System.nanoTime();
            Thread completer = new Thread(this::completeAll, "completion");
            completer.start();
            generate(startNs);
            long generatedNs = System.nanoTime();
            ended.await();
            long doneNs = System.nanoTime();
            long cpuNs = system.getProcessCpuTime() - cpuBefore;
            long[] collectionsAfter = collections();
            completer.interrupt();
            completer.join();
            if (purgatory != null) {
                purgatory.shutdown();
            }
            return report(startNs, generatedNs, doneNs, cpuNs,
                new long[] {collectionsAfter[0] - collectionsBefore[0], collectionsAfter[1] - collectionsBefore[1]});
        }

        private void generate(long startNs) {
            for (int number = 0; number < samples.arrivalMs.length; number++) {
                long arrivalNs = startNs + samples.arrivalMs[number] * MS;
                long wait = arrivalNs - System.nanoTime();
                while (wait > 0) {
                    LockSupport.parkNanos(wait);
                    wait = arrivalNs - System.nanoTime();
                }
                long latencyMs = samples.latencyMs[number];
                boolean completes = latencyMs < samples.timeoutMs;
                bornNs[number] = System.nanoTime();
                Request request = new Request(number);
                if (purgatory != null) {
                    purgatory.tryCompleteElseWatch(request, samples.keys.get(number));
                } else if (!completes) {
                    expired[number] = true;
                    latencyMs = samples.timeoutMs;
                }
                if (completes || purgatory == null) {
                    queue.add(new Completion(request, latencyMs));
                }
            }
        }

        private void completeAll() {
            try {
                while (true) {
                    Request request = queue.take().request;
                    if (byKey && purgatory != null) {
                        request.ready = true;
                        purgatory.checkAndComplete(samples.keys.get(request.number).get(0));
                    } else {
                        request.forceComplete();
                    }
                }
            } catch (InterruptedException end) {
                // The run is over.
            }
        }

        private String report(long startNs, long generatedNs, long doneNs, long cpuNs, long[] collections) {
            int count = endedNs.length;
            long[] completedLate = new long[count];
            long[] expiredLate = new long[count];
            int completed = 0;
            int expirations = 0;
            for (int number = 0; number < count; number++) {
                if (expired[number]) {
                    // Late after the deadline that the timer was given, which is in whole ms.
                    long deadlineMs = Math.floorDiv(bornNs[number], MS) + samples.timeoutMs;
                    expiredLate[expirations++] = endedNs[number] - deadlineMs * MS;
                } else {
                    long waitedNs = endedNs[number] - bornNs[number];
                    completedLate[completed++] = waitedNs - samples.latencyMs[number] * MS;
                }
            }
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("rate", count * 1e9 / (generatedNs - startNs));
            fields.put("elapsed_ms", (doneNs - startNs) / 1e6);
            fields.put("cpu_us", cpuNs / 1e3 / count);
            fields.put("completed", completed);
            fields.put("expired", expirations);
            putLateness(fields, "completed_late", Arrays.copyOf(completedLate, completed));
            putLateness(fields, "expired_late", Arrays.copyOf(expiredLate, expirations));
            fields.put("collections", collections[0]);
            fields.put("collections_ms", collections[1]);
            return json(fields);
        }

        private static void putLateness(Map<String, Object> fields, String name, long[] lateNs) {
            Arrays.sort(lateNs);
            int count = lateNs.length;
            fields.put(name + "_p50_us", count == 0 ? null : lateNs[count / 2] / 1e3);
            fields.put(name + "_p99_us", count == 0 ? null : lateNs[(int) (count * 0.99)] / 1e3);
            fields.put(name + "_max_us", count == 0 ? null : lateNs[count - 1] / 1e3);
        }

        private static long[] collections() {
            long[] sums = new long[2];
            for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
                sums[0] += collector.getCollectionCount();
                sums[1] += collector.getCollectionTime();
            }
            return sums;
        }

        private final class Request extends DelayedOperation {
            private final int number;
            private volatile boolean ready;

            Request(int number) {
                super(samples.timeoutMs);
                this.number = number;
            }

            @Override
            public boolean tryComplete() {
                return ready && forceComplete();
            }

            @Override
            public void onComplete() {
                endedNs[number] = System.nanoTime();
                ended.countDown();
            }

            @Override
            public void onExpiration() {
                expired[number] = true;
            }
        }

        private final class Completion implements Delayed {
            private final Request request;
            private final long dueNs;

            Completion(Request request, long latencyMs) {
                this.request = request;
                dueNs = bornNs[request.number] + latencyMs * MS;
            }

            @Override
            public long getDelay(TimeUnit unit) {
                return unit.convert(dueNs - System.nanoTime(), TimeUnit.NANOSECONDS);
            }

            @Override
            public int compareTo(Delayed other) {
                return Long.compare(dueNs, ((Completion) other).dueNs);
            }
        }
    }

    /** What one operation costs, in CPU time of the threads that are in Java: no collection, no compiler. */
    static final class Micro {
        private final int operations;
        private final List<TopicPartitionOperationKey> space = new ArrayList<>();
        private final Map<String, Double> best = new LinkedHashMap<>();

        Micro(int operations) {
            this.operations = operations;
            for (int number = 0; number < MICRO_KEYS; number++) {
                space.add(new TopicPartitionOperationKey("topic", number));
            }
        }

        String run(int repeats) throws Exception {
            for (int repeat = 0; repeat < repeats; repeat++) {
                measure(1);
                measure(3);
            }
            return json(new LinkedHashMap<>(best));
        }

        private void measure(int keys) throws Exception {
            String suffix = keys == 1 ? ", 1 key" : ", " + keys + " keys";
            List<List<TopicPartitionOperationKey>> lists = new ArrayList<>();
            for (int number = 0; number < MICRO_KEYS; number++) {
                List<TopicPartitionOperationKey> list = new ArrayList<>();
                for (int next = 0; next < keys; next++) {
                    list.add(space.get((number + next) % MICRO_KEYS));
                }
                lists.add(list);
            }
            DelayedOperationPurgatory<DelayedOperation> purgatory = newPurgatory();
            Waiting[] waiting = makeOperations();
            long before = begin();
            for (int number = 0; number < operations; number++) {
                purgatory.tryCompleteElseWatch(waiting[number], lists.get(number % MICRO_KEYS));
            }
            end("watch" + suffix, before, operations);

            before = begin();
            for (TopicPartitionOperationKey key : space) {
                purgatory.checkAndComplete(key);
            }
            end("check, a key waited under" + suffix, before, (long) operations * keys);

            for (Waiting each : waiting) {
                each.ready = true;
            }
            before = begin();
            int completed = 0;
            for (TopicPartitionOperationKey key : space) {
                completed += purgatory.checkAndComplete(key);
            }
            end("check and complete" + suffix, before, operations);
            if (completed != operations) {
                throw new AssertionError(completed + " of " + operations + " completed");
            }

            waiting = makeOperations();
            for (int number = 0; number < operations; number++) {
                purgatory.tryCompleteElseWatch(waiting[number], lists.get(number % MICRO_KEYS));
            }
            before = begin();
            for (Waiting each : waiting) {
                each.forceComplete();
            }
            // The reaper purges at its next turn, 200 ms later at most.
            Thread.sleep(300);
            end("force complete" + suffix, before, operations);
            purgatory.shutdown();
        }

        private Waiting[] makeOperations() {
            Waiting[] waiting = new Waiting[operations];
            for (int number = 0; number < operations; number++) {
                waiting[number] = new Waiting();
            }
            return waiting;
        }

        private static long begin() {
            System.gc();
            return cpuNs();
        }

        private void end(String name, long before, long count) {
            best.merge(name, (double) (cpuNs() - before) / count, Math::min);
        }

        private static long cpuNs() {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            long sum = 0;
            for (long id : threads.getAllThreadIds()) {
                sum += Math.max(0, threads.getThreadCpuTime(id));
            }
            return sum;
        }
    }

    private static final class Waiting extends DelayedOperation {
        private volatile boolean ready;

        Waiting() {
            super(MICRO_TIMEOUT_MS);
        }

        @Override
        public boolean tryComplete() {
            return ready && forceComplete();
        }

        @Override
        public void onComplete() {
        }

        @Override
        public void onExpiration() {
        }
    }
}
