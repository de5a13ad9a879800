import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The JDK's ScheduledThreadPoolExecutor with one thread, which removes what is cancelled.
 *
 * Its clock cannot be set.  A pass that advances shrinks all delays to half a second: a heap's
 * work depends on their order alone.  Until everything is due its thread is held by a task.
 */
final class JdkPeer extends Peer {
    private static final Runnable TASK = () -> ran++;
    private static final long SHRUNK_NANOS = 500_000_000L;

    private ScheduledThreadPoolExecutor executor;
    private volatile Thread worker;
    private CountDownLatch holding;
    private Future<?>[] handles;
    private long[] delaysNanos;
    private long baseNanos;

    @Override
    void begin(int[] delaysMs, int spanMs, boolean isToAdvance) throws Exception {
        executor = new ScheduledThreadPoolExecutor(1, this::makeWorker);
        executor.setRemoveOnCancelPolicy(true);
        holding = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch held = holding;
        executor.execute(() -> {
            begun.countDown();
            try {
                held.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        begun.await();
        handles = new Future<?>[delaysMs.length];
        delaysNanos = new long[delaysMs.length];
        for (int i = 0; i < delaysMs.length; i++)
            delaysNanos[i] = isToAdvance
                ? delaysMs[i] * SHRUNK_NANOS / spanMs
                : delaysMs[i] * 1_000_000L;
        baseNanos = System.nanoTime() + 20_000_000L + delaysMs.length * 1_000L;
    }

    private Thread makeWorker(Runnable runnable) {
        worker = new Thread(runnable, "jdk-worker");
        worker.setDaemon(true);
        return worker;
    }

    @Override
    void add() {
        long offset = 0;
        for (int i = 0; i < handles.length; i++) {
            if (i % CHUNK == 0)
                offset = baseNanos - System.nanoTime();
            handles[i] = executor.schedule(TASK, offset + delaysNanos[i], TimeUnit.NANOSECONDS);
        }
    }

    @Override
    void cancel(int[] victims) {
        for (int victim : victims)
            handles[victim].cancel(false);
    }

    @Override
    void awaitDue() throws Exception {
        long left = baseNanos + SHRUNK_NANOS - System.nanoTime();
        if (left > 0)
            Thread.sleep(left / 1_000_000 + 1);
    }

    /** Let the executor's thread go; the caller's part is to wait. */
    @Override
    void advance(int expected) throws Exception {
        holding.countDown();
        while (!executor.getQueue().isEmpty() || executor.getActiveCount() > 0)
            Thread.sleep(1);
    }

    @Override
    void end() {
        holding.countDown();
        executor.shutdownNow();
        executor = null;
        handles = null;
    }

    @Override
    long workerCpuNanos() {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(worker.getId());
    }
}
