package keylane.compat;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.MetadataResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.RequestUtils;

/**
 * A proxy in front of one broker that writes down what a consumer of a single topic fetches and
 * commits. Answers that name the broker's address name the proxy's instead.
 */
final class Recorder implements AutoCloseable {
    enum Kind { FETCH, ANSWER, COMMIT, HANDLED }

    /**
     * What happened, with offsets per lane: the one that was asked for or committed, those of the
     * records of an answer, that of the record that was handled.
     */
    record Event(Kind kind, Map<Integer, List<Long>> offsets) {
    }

    private final InetSocketAddress broker;
    private final ServerSocket server;
    private final Queue<Socket> sockets = new ConcurrentLinkedQueue<>();
    private final List<Event> events = new ArrayList<>();

    Recorder(String bootstrap) throws IOException {
        int colon = bootstrap.lastIndexOf(':');
        int port = Integer.parseInt(bootstrap.substring(colon + 1));
        broker = new InetSocketAddress(bootstrap.substring(0, colon), port);
        server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        start(this::accept);
    }

    String address() {
        return host() + ":" + server.getLocalPort();
    }

    private String host() {
        return server.getInetAddress().getHostAddress();
    }

    /** The order of events is the order of these calls: all parties are in this process. */
    private synchronized void note(Kind kind, Map<Integer, List<Long>> offsets) {
        events.add(new Event(kind, offsets));
    }

    void noteHandled(int lane, long offset) {
        note(Kind.HANDLED, Map.of(lane, List.of(offset)));
    }

    synchronized List<Event> events() {
        return List.copyOf(events);
    }

    private interface Work {
        void run() throws IOException;
    }

    private void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException error) {
                // One of the two ends has closed; the other one shall know.
                sockets.forEach(Recorder::closeQuietly);
            }
        }, "recorder");
        thread.setDaemon(true);
        thread.start();
    }

    private static void closeQuietly(Socket socket) {
        try {
            socket.close();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = server.accept();
            Socket upstream = new Socket();
            sockets.add(client);
            sockets.add(upstream);
            upstream.connect(broker);
            client.setTcpNoDelay(true);
            upstream.setTcpNoDelay(true);
            Map<Integer, RequestHeader> asked = new ConcurrentHashMap<>();
            start(() -> passRequests(client, upstream, asked));
            start(() -> passAnswers(upstream, client, asked));
        }
    }

    private void passRequests(Socket from, Socket to, Map<Integer, RequestHeader> asked)
        throws IOException {
        var in = new DataInputStream(from.getInputStream());
        var out = new DataOutputStream(to.getOutputStream());
        while (true) {
            byte[] frame = in.readNBytes(in.readInt());
            ByteBuffer buffer = ByteBuffer.wrap(frame);
            RequestHeader header = RequestHeader.parse(buffer);
            asked.put(header.correlationId(), header);
            noteRequest(header, buffer);
            send(out, ByteBuffer.wrap(frame));
        }
    }

    private void noteRequest(RequestHeader header, ByteBuffer buffer) {
        AbstractRequest request = AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(),
            new ByteBufferAccessor(buffer)).request;
        Map<Integer, List<Long>> offsets = new TreeMap<>();
        if (request instanceof FetchRequest fetch) {
            fetch.data().topics().forEach(topic -> topic.partitions()
                .forEach(lane -> offsets.put(lane.partition(), List.of(lane.fetchOffset()))));
            note(Kind.FETCH, offsets);
        } else if (request instanceof OffsetCommitRequest commit) {
            commit.data().topics().forEach(topic -> topic.partitions()
                .forEach(
                    lane -> offsets.put(lane.partitionIndex(), List.of(lane.committedOffset()))));
            note(Kind.COMMIT, offsets);
        }
    }

    private void passAnswers(Socket from, Socket to, Map<Integer, RequestHeader> asked)
        throws IOException {
        var in = new DataInputStream(from.getInputStream());
        var out = new DataOutputStream(to.getOutputStream());
        while (true) {
            ByteBuffer frame = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            RequestHeader header = asked.remove(frame.getInt(0));
            AbstractResponse answer = AbstractResponse.parseResponse(frame.duplicate(), header);
            if (answer instanceof FetchResponse fetch) {
                noteAnswer(fetch);
            }
            send(out, isRenamed(answer) ? bytes(answer.data(), header) : frame);
        }
    }

    private void noteAnswer(FetchResponse answer) {
        Map<Integer, List<Long>> offsets = new TreeMap<>();
        for (var topic : answer.data().responses()) {
            for (var lane : topic.partitions()) {
                List<Long> all = new ArrayList<>();
                ((Records) lane.records()).records().forEach(record -> all.add(record.offset()));
                if (!all.isEmpty()) {
                    offsets.put(lane.partitionIndex(), all);
                }
            }
        }
        note(Kind.ANSWER, offsets);
    }

    /** Puts the proxy's address into an answer that tells where brokers are. */
    private boolean isRenamed(AbstractResponse answer) {
        if (answer instanceof MetadataResponse metadata) {
            metadata.data().brokers()
                .forEach(one -> one.setHost(host()).setPort(server.getLocalPort()));
            return true;
        }
        if (answer instanceof FindCoordinatorResponse coordinator) {
            coordinator.data().coordinators()
                .forEach(one -> one.setHost(host()).setPort(server.getLocalPort()));
            return true;
        }
        return false;
    }

    private static ByteBuffer bytes(Message data, RequestHeader header) {
        var answerHeader = new ResponseHeaderData().setCorrelationId(header.correlationId());
        return RequestUtils.serialize(answerHeader, header.toResponseHeader().headerVersion(), data,
            header.apiVersion());
    }

    private static void send(DataOutputStream out, ByteBuffer frame) throws IOException {
        out.writeInt(frame.remaining());
        out.write(frame.array(), frame.arrayOffset() + frame.position(), frame.remaining());
        out.flush();
    }

    @Override
    public void close() throws IOException {
        server.close();
        sockets.forEach(Recorder::closeQuietly);
    }
}
