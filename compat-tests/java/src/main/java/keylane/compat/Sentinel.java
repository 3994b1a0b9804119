package keylane.compat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Notes what all consumers of a group do in keyed delivery. Per key, records are numbered from 0
 * on; at most one may be in work at a time, and none may be begun before the one in front of it is
 * done. A record that comes again is counted: whoever provokes a failure decides how many may.
 */
final class Sentinel {
    private final Map<String, String> inWork = new HashMap<>();
    private final Map<String, Integer> next = new HashMap<>();
    private final Map<String, String> handledBy = new HashMap<>();
    private final Set<String> skipped = new HashSet<>();
    private final List<String> faults = new ArrayList<>();
    private final List<String> repeats = new ArrayList<>();
    private int handled = 0;
    private int inWorkMax = 0;

    /** This record will never be handled. */
    synchronized void skip(String key, int number) {
        skipped.add(key + "/" + number);
    }

    /** The number of the key's next record, after those that were handled or are skipped. */
    synchronized int nextOf(String key) {
        int number = next.getOrDefault(key, 0);
        while (skipped.contains(key + "/" + number)) {
            number++;
        }
        return number;
    }

    synchronized void begin(String who, String key, int number) {
        String other = inWork.put(key, who);
        if (other != null) {
            faults.add(key + "/" + number + " at " + who + " and at " + other);
        }
        int expected = nextOf(key);
        if (number > expected) {
            faults.add(key + "/" + number + " before " + key + "/" + expected + ", at " + who);
        }
        inWorkMax = Math.max(inWorkMax, inWork.size());
    }

    synchronized void end(String who, String key, int number) {
        inWork.remove(key);
        String record = key + "/" + number;
        String before = handledBy.put(record, who);
        if (before != null) {
            repeats.add(record + " at " + who + " after " + before);
            return;
        }
        next.merge(key, number + 1, Math::max);
        handled++;
    }

    /** A handler threw. */
    synchronized void fail(String key) {
        inWork.remove(key);
    }

    synchronized boolean isInWork(String key) {
        return inWork.containsKey(key);
    }

    /** Of a consumer that was killed: nothing is in work there any more. */
    synchronized int drop(String who) {
        int before = inWork.size();
        inWork.values().removeIf(who::equals);
        return before - inWork.size();
    }

    synchronized int handled() {
        return handled;
    }

    synchronized int repeated() {
        return repeats.size();
    }

    synchronized int inWorkMax() {
        return inWorkMax;
    }

    void expectHandled(int count, long seconds) throws InterruptedException {
        Expect.eventually(() -> count + " records are handled, " + this, seconds,
            () -> handled() >= count);
    }

    synchronized void expectOrder() {
        Expect.that(faults.isEmpty(), "order of the keys: " + first(faults));
    }

    synchronized void expectOnce(int count) {
        expectOrder();
        Expect.that(repeats.isEmpty(), "each record once, again came " + first(repeats));
        Expect.equal(count, handled, "records");
    }

    private static String first(List<String> all) {
        return all.size() + ": " + all.subList(0, Math.min(5, all.size()));
    }

    @Override
    public synchronized String toString() {
        return "handled " + handled + ", again " + first(repeats) + ", in work " + inWork
            + ", faults " + first(faults);
    }
}
