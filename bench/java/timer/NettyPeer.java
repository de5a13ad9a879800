import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;

/**
 * Netty's HashedWheelTimer with its own shape of 512 buckets.
 *
 * Its clock cannot be set, so time runs a hundred times as fast: ticks of 1 ms stand for its
 * default of 100 ms, delays are a hundredth.  Ticks, rounds and entries a tick are those of the
 * full span.  It has a thread of its own, which puts entries into buckets and takes cancelled ones
 * out; the caller only queues them, so the worker's time belongs to the price.
 */
final class NettyPeer extends Peer {
    private static final int FASTER = 100;
    private static final TimerTask TASK = timeout -> ran++;

    private HashedWheelTimer timer;
    private volatile Thread worker;
    private Timeout[] handles;
    private long[] delaysNanos;
    private long baseNanos;

    @Override
    void begin(int[] delaysMs, int spanMs, boolean isToAdvance) {
        timer = new HashedWheelTimer(this::makeWorker, 1, TimeUnit.MILLISECONDS, 512, false);
        timer.start();
        handles = new Timeout[delaysMs.length];
        delaysNanos = new long[delaysMs.length];
        for (int i = 0; i < delaysMs.length; i++)
            delaysNanos[i] = delaysMs[i] * 1_000_000L / FASTER;
        // Nothing is due before everything is added.
        baseNanos = System.nanoTime() + 50_000_000L + delaysMs.length * 500L;
    }

    private Thread makeWorker(Runnable runnable) {
        worker = new Thread(runnable, "netty-worker");
        worker.setDaemon(true);
        return worker;
    }

    @Override
    void add() {
        long offset = 0;
        for (int i = 0; i < handles.length; i++) {
            if (i % CHUNK == 0)
                offset = baseNanos - System.nanoTime();
            handles[i] = timer.newTimeout(TASK, offset + delaysNanos[i], TimeUnit.NANOSECONDS);
        }
    }

    @Override
    void cancel(int[] victims) {
        for (int victim : victims)
            handles[victim].cancel();
    }

    /** The worker does it by itself; the caller's part is to wait. */
    @Override
    void advance(int expected) throws Exception {
        while (timer.pendingTimeouts() > 0)
            Thread.sleep(1);
    }

    @Override
    void end() {
        timer.stop();
        timer = null;
        handles = null;
    }

    @Override
    long workerCpuNanos() {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(worker.getId());
    }
}
