/**
 * A Java timer under measurement.  One pass is begin, add, cancel, advance, end; who calls times
 * each of them by the CPU time of the calling thread and of the peer's own thread.
 */
abstract class Peer {
    /** How many deadlines share one reading of the clock where a peer's clock cannot be set. */
    static final int CHUNK = 256;

    /** What the tasks do: counted, so that a pass can tell that none was lost. */
    static int ran;

    /** A new timer, and the tasks that are there before they are added. */
    abstract void begin(int[] delaysMs, int spanMs, boolean isToAdvance) throws Exception;

    abstract void add() throws Exception;

    abstract void cancel(int[] victims);

    /** Sleep, without being measured, until everything is due. */
    void awaitDue() throws Exception {}

    /** Run what is pending. */
    abstract void advance(int expected) throws Exception;

    /** Stop the timer's threads and forget everything. */
    abstract void end() throws Exception;

    /** CPU time of the peer's own thread so far, 0 without one. */
    long workerCpuNanos() {
        return 0;
    }
}
