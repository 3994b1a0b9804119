package keylane.compat;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * The harness: a list of named checks, run a few at a time because most of them wait for a broker.
 * A check passes unless it throws; one that takes too long is interrupted and fails.
 */
final class Checks {
    /** A check without an answer in this time would not end at all. */
    private static final long CHECK_SECONDS_MAX = 60;

    interface Body {
        void run() throws Exception;
    }

    private record Check(String name, boolean fast, Body body) {
    }

    private final List<Check> checks = new ArrayList<>();
    private String area = "";
    private int passed = 0;
    private int failed = 0;

    void area(String name) {
        area = name;
    }

    void add(String name, Body body) {
        checks.add(new Check(area + ": " + name, true, body));
    }

    /** A check that is left out when FAST=1. */
    void addSlow(String name, Body body) {
        checks.add(new Check(area + ": " + name, false, body));
    }

    /**
     * @param only part of a name that a check must have, or null for all
     * @return the number of failed checks
     */
    int run(boolean fastOnly, String only, int parallel) throws InterruptedException {
        List<Check> chosen = checks.stream()
            .filter(check -> check.fast || !fastOnly)
            .filter(check -> only == null || check.name.contains(only))
            .toList();
        // A worker waits for the thread that runs its check, and gives up on it in the end.
        ExecutorService workers = Executors.newFixedThreadPool(parallel);
        for (Check check : chosen) {
            workers.execute(() -> runOne(check));
        }
        workers.shutdown();
        if (!workers.awaitTermination(1, TimeUnit.HOURS)) {
            throw new IllegalStateException("the checks did not end");
        }
        System.out.println(passed + " passed, " + failed + " failed");
        return failed;
    }

    private void runOne(Check check) {
        long startedNanos = System.nanoTime();
        ExecutorService runner = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, check.name);
            thread.setDaemon(true);
            return thread;
        });
        Throwable problem = null;
        Future<?> future = runner.submit(() -> {
            check.body.run();
            return null;
        });
        try {
            future.get(CHECK_SECONDS_MAX, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            problem = error.getCause();
        } catch (Exception error) {
            problem = error;
        }
        runner.shutdownNow();
        report(check, problem, (System.nanoTime() - startedNanos) / 1_000_000);
    }

    private synchronized void report(Check check, Throwable problem, long tookMs) {
        String time = String.format(Locale.ROOT, "%5d ms", tookMs);
        if (problem == null) {
            passed++;
            System.out.println("ok   " + time + "  " + check.name);
            return;
        }
        failed++;
        System.out.println("FAIL " + time + "  " + check.name);
        System.out.println("     " + problem);
        for (Throwable cause = problem.getCause(); cause != null; cause = cause.getCause()) {
            System.out.println("     caused by " + cause);
        }
        for (StackTraceElement frame : problem.getStackTrace()) {
            if (frame.getClassName().startsWith("keylane.")) {
                System.out.println("       at " + frame);
            }
        }
    }
}
