import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Kafka's SystemTimer with its own shape, 1 ms and 20 buckets.
 *
 * Its clock cannot be set, but its first wheel can be told where to begin: a timer that begins a
 * whole span in the past, with deadlines that lie between then and now, does the work of one whose
 * time is moved over that span: same levels, same buckets, same cascades.
 */
final class KafkaPeer extends Peer {
    private static final class Task extends TimerTask {
        Task(long delayMs) {
            super(delayMs);
        }

        @Override
        public void run() {
            ran++;
        }
    }

    private SystemTimer timer;
    private TimerTask[] tasks;

    @Override
    void begin(int[] delaysMs, int spanMs, boolean isToAdvance) {
        timer = new SystemTimer("bench", 1, 20, Time.SYSTEM.hiResClockMs() - spanMs);
        tasks = new TimerTask[delaysMs.length];
        for (int i = 0; i < tasks.length; i++)
            tasks[i] = new Task(delaysMs[i] - spanMs);
    }

    @Override
    void add() {
        for (TimerTask task : tasks)
            timer.add(task);
    }

    @Override
    void cancel(int[] victims) {
        for (int victim : victims)
            tasks[victim].cancel();
    }

    @Override
    void awaitDue() throws Exception {
        Thread.sleep(2);
    }

    @Override
    void advance(int expected) throws Exception {
        while (timer.size() > 0)
            timer.advanceClock(0);
    }

    /** The tasks run in the timer's own executor, after the measured time. */
    @Override
    void end() throws Exception {
        timer.close();
        timer = null;
        tasks = null;
    }
}
