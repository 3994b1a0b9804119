package keylane.compat;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What Keylane takes for granted about this client in keyed delivery: what its commits cover and
 * what its fetches prove. The client reads through a proxy while its handler takes its time.
 */
final class KeyedWireChecks {
    private static final int RECORDS = 40;

    private final Clients clients;

    KeyedWireChecks(Clients clients) {
        this.clients = clients;
    }

    void register(Checks checks) {
        if (Clients.nodes() > 1) {
            // They are about the client, which finds ways around a proxy in front of one node.
            System.out.println("the checks with a proxy are left out: there are several nodes");
            return;
        }
        checks.area("keyed wire");
        checks.add("commits and fetches around a slow handler", () -> observe(6, "500"));
        checks.add("commits and fetches around a slow handler, one lane", () -> observe(1, "500"));
        checks.add("commits and fetches around a slow handler, one record per poll",
            () -> observe(6, "1"));
    }

    private void observe(int lanes, String maxPollRecords) throws Exception {
        // The default interval of five seconds would make few commits in the time of a check.
        String[] settings = {"enable.auto.commit", "true", "auto.commit.interval.ms", "100",
            "max.poll.records", maxPollRecords, "fetch.max.wait.ms", "100"};
        List<Recorder.Event> events;
        try (var recorder = new Recorder(clients.bootstrap);
            var proxied = new Clients(recorder.address());
            var group = new KeyedGroup(proxied, lanes)) {
            group.send(KeyedGroup.keys(RECORDS / 2), 0, 1);
            group.join((member, record) -> {
                Thread.sleep(50);
                recorder.noteHandled(record.partition(), record.offset());
            }, settings);
            // The second half comes bit by bit, so that answers find a client that waits.
            for (int number = 1; number <= RECORDS / 2; number++) {
                group.send(List.of("late"), number - 1, number);
                Thread.sleep(20);
            }
            group.expectDone(RECORDS, 15);
            events = recorder.events();
        }
        var replay = new Replay();
        events.forEach(replay::next);
        Expect.equal(RECORDS, replay.handled, "records in the recording");
        Expect.that(replay.commits > 2, "commits, there were " + replay.commits);
        // With one record per poll the client finds out in the next poll that a lane has no more.
        boolean isDrained = !maxPollRecords.equals("1");
        Expect.that(replay.isPrefetchSeen || !isDrained, "a fetch before the last answer is done");
        Expect.that(replay.isLastProven, "a fetch that proves the last answer");
    }

    /** Goes through a recording and expects of each request what the broker concludes from it. */
    private static final class Replay {
        private final Map<Integer, Lane> lanes = new HashMap<>();
        /** The lanes that the fetch under way names at their ends. */
        private final Set<Lane> asked = new HashSet<>();
        private int handled = 0;
        private int commits = 0;
        private boolean isPrefetchSeen = false;
        private boolean isLastProven = false;

        private static final class Lane {
            /** What the client got and did not handle yet. */
            final TreeSet<Long> inHand = new TreeSet<>();
            /** Of its last answer with records. */
            long firstOfLast = 0;
            long end = -1;
            boolean isAskedInVain = false;
        }

        void next(Recorder.Event event) {
            if (event.kind() == Recorder.Kind.FETCH) {
                asked.clear();
            } else if (event.kind() == Recorder.Kind.ANSWER) {
                asked.forEach(lane -> lane.isAskedInVain = true);
            } else if (event.kind() == Recorder.Kind.COMMIT) {
                commits++;
            }
            event.offsets().forEach((number, offsets) -> {
                Lane lane = lanes.computeIfAbsent(number, key -> new Lane());
                switch (event.kind()) {
                    case FETCH -> fetch(lane, offsets.get(0));
                    case ANSWER -> answer(lane, offsets);
                    case COMMIT -> expectHandled(lane, offsets.get(0), "a commit");
                    case HANDLED -> handle(lane, offsets.get(0));
                }
            });
        }

        private void fetch(Lane lane, long offset) {
            if (offset != lane.end) {
                return;
            }
            asked.add(lane);
            if (lane.isAskedInVain) {
                expectHandled(lane, lane.end, "a second fetch at the end");
                isLastProven = true;
            } else {
                expectHandled(lane, lane.firstOfLast, "a fetch after another answer");
                isPrefetchSeen |= !lane.inHand.isEmpty();
            }
        }

        private void answer(Lane lane, List<Long> offsets) {
            lane.inHand.addAll(offsets);
            lane.firstOfLast = offsets.get(0);
            lane.end = offsets.get(offsets.size() - 1) + 1;
            lane.isAskedInVain = false;
        }

        private void handle(Lane lane, long offset) {
            handled++;
            lane.inHand.remove(offset);
        }

        private static void expectHandled(Lane lane, long end, String what) {
            Set<Long> open = lane.inHand.headSet(end);
            Expect.that(open.isEmpty(), what + " at " + end + " covers handled records only, not "
                + open);
        }
    }
}
