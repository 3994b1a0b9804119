package keylane.compat;

import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Assertions, and waiting for what a broker does in its own time. */
final class Expect {
    private static final long ANSWER_SECONDS_MAX = 30;
    private static final long SOON_SECONDS_MAX = 15;
    private static final long LOOK_AGAIN_MS = 20;

    private Expect() {
    }

    static void that(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    /** The value of a future; its failure is thrown as it is, not wrapped. */
    static <T> T get(Future<T> future) throws Exception {
        try {
            return future.get(ANSWER_SECONDS_MAX, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw error;
        }
    }

    /** The error of a future that has to fail with exactly this kind. */
    static <E extends Throwable> E failure(Class<E> kind, Future<?> future) throws Exception {
        return thrown(kind, () -> get(future));
    }

    static <E extends Throwable> E thrown(Class<E> kind, Checks.Body body) {
        try {
            body.run();
        } catch (Throwable error) {
            if (error.getClass() == kind) {
                return kind.cast(error);
            }
            throw new AssertionError("expected " + kind.getSimpleName() + ", got " + error, error);
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", nothing was thrown");
    }

    /**
     * Repeats a body until its assertions hold. A Kafka broker learns of changes to topics and
     * settings after their answers, because the controller gives them.
     */
    static void soon(Checks.Body body) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(SOON_SECONDS_MAX);
        while (true) {
            try {
                body.run();
                return;
            } catch (AssertionError error) {
                if (System.nanoTime() > deadline) {
                    throw error;
                }
                Thread.sleep(LOOK_AGAIN_MS);
            }
        }
    }

    static void eventually(String what, long seconds, BooleanSupplier condition)
        throws InterruptedException {
        eventually(() -> what, seconds, condition);
    }

    static void eventually(Supplier<String> what, long seconds, BooleanSupplier condition)
        throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not within " + seconds + " s: " + what.get());
            }
            Thread.sleep(LOOK_AGAIN_MS);
        }
    }
}
