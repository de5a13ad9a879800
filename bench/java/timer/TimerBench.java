import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Measures one Java timer, by requests on standard input, an answer in JSON for each.
 *
 *     pass PENDING SPAN_MS CANCELLED_PERCENT ORDER     ORDER: oldest or anywhere
 *     memory PENDING SPAN_MS
 *     warm PENDING SPAN_MS SECONDS
 *
 * Times are CPU times of the calling thread and of the timer's own thread, in ns an operation.
 * Garbage collection runs in a thread of the machine; its time is told beside them.
 */
public final class TimerBench {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Peer peer;

    private TimerBench(Peer peer) {
        this.peer = peer;
    }

    public static void main(String[] arguments) throws Exception {
        TimerBench bench = new TimerBench(peerNamed(arguments[0]));
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            System.out.println(bench.answer(line.trim().split(" ")));
            System.out.flush();
        }
        System.exit(0);
    }

    private static Peer peerNamed(String name) {
        switch (name) {
            case "kafka": return new KafkaPeer();
            case "netty": return new NettyPeer();
            case "jdk": return new JdkPeer();
            default: throw new IllegalArgumentException("kafka, netty or jdk, not " + name);
        }
    }

    private String answer(String[] words) throws Exception {
        int pending = Integer.parseInt(words[1]);
        int spanMs = Integer.parseInt(words[2]);
        switch (words[0]) {
            case "pass":
                return pass(pending, spanMs, Integer.parseInt(words[3]), words[4].equals("anywhere"));
            case "memory":
                return memory(pending, spanMs);
            case "warm":
                return warm(pending, spanMs, Double.parseDouble(words[3]));
            default:
                throw new IllegalArgumentException("no such request: " + words[0]);
        }
    }

    /** One measured phase: CPU of the caller, of the worker, and what was collected meanwhile. */
    private final class Phase {
        private final long workerBefore = peer.workerCpuNanos();
        private final long collectorBefore = collectorMillis();
        private final long before = THREADS.getCurrentThreadCpuTime();
        private long caller;
        private long worker;
        private long collector;

        void stop() {
            caller = THREADS.getCurrentThreadCpuTime() - before;
            worker = peer.workerCpuNanos() - workerBefore;
            collector = (collectorMillis() - collectorBefore) * 1_000_000L;
        }
    }

    private String pass(int pending, int spanMs, int percent, boolean isAnywhere) throws Exception {
        int[] delays = delays(pending, spanMs);
        int[] victims = victims(pending, percent, isAnywhere);
        int left = pending - victims.length;
        System.gc();
        Peer.ran = 0;
        long makeBefore = THREADS.getCurrentThreadCpuTime();
        peer.begin(delays, spanMs, left > 0);
        long make = THREADS.getCurrentThreadCpuTime() - makeBefore;
        Phase add = new Phase();
        peer.add();
        add.stop();
        Phase cancel = new Phase();
        peer.cancel(victims);
        cancel.stop();
        Phase idle = new Phase();
        if (left > 0)
            peer.awaitDue();
        idle.stop();
        Phase advance = new Phase();
        if (left > 0)
            peer.advance(left);
        advance.stop();
        peer.end();
        // The worker goes on with what it was handed while the caller is in its next phase.
        long workerNanos = add.worker + cancel.worker + idle.worker + advance.worker;
        return String.format(
            "{\"make_s\": %.9f, \"add_s\": %.9f, \"cancel_s\": %.9f, \"advance_s\": %.9f, "
                + "\"worker_s\": %.9f, \"collector_s\": %.9f, \"cancelled\": %d, \"left\": %d}",
            make / 1e9, add.caller / 1e9, cancel.caller / 1e9, advance.caller / 1e9,
            workerNanos / 1e9,
            (add.collector + cancel.collector + advance.collector) / 1e9, victims.length, left);
    }

    private String memory(int pending, int spanMs) throws Exception {
        int[] delays = delays(pending, spanMs);
        usedBytes();  // what it loads when first called would count as used
        long before = usedBytes();
        peer.begin(delays, spanMs, false);
        peer.add();
        Thread.sleep(200);
        // Arrays of the measurement itself: a reference an entry, and a delay where it is kept.
        long ours = peer instanceof KafkaPeer ? 4L * pending : 12L * pending;
        double bytes = (usedBytes() - before - ours) / (double) pending;
        Reference.reachabilityFence(delays);
        peer.end();
        return String.format("{\"bytes\": %.1f}", bytes);
    }

    /** Small passes of every kind until the compiler has had its time. */
    private String warm(int pending, int spanMs, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int passes = 0;
        while (passes < 4 || System.nanoTime() < end) {
            pass(pending, spanMs, passes % 2 == 0 ? 100 : 50, passes % 4 == 0);
            passes++;
        }
        return "{\"passes\": " + passes + "}";
    }

    private static long usedBytes() {
        // The serial collector lets some of the dead lie, but not in every fourth round.
        for (int i = 0; i < 4; i++)
            System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private static long collectorMillis() {
        long millis = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans())
            millis += bean.getCollectionTime();
        return millis;
    }

    private static int[] delays(int pending, int spanMs) {
        SplittableRandom chance = new SplittableRandom(pending);
        int[] delays = new int[pending];
        for (int i = 0; i < pending; i++)
            delays[i] = 1 + chance.nextInt(spanMs);
        return delays;
    }

    /** Who is cancelled: all for 100, else each with that chance; in order of adding, or not. */
    private static int[] victims(int pending, int percent, boolean isAnywhere) {
        SplittableRandom chance = new SplittableRandom(percent);
        List<Integer> found = new ArrayList<>();
        for (int i = 0; i < pending; i++)
            if (chance.nextInt(100) < percent)
                found.add(i);
        int[] victims = found.stream().mapToInt(Integer::intValue).toArray();
        if (isAnywhere)
            for (int i = victims.length - 1; i > 0; i--) {
                int other = chance.nextInt(i + 1);
                int kept = victims[i];
                victims[i] = victims[other];
                victims[other] = kept;
            }
        return victims;
    }
}
