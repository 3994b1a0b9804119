package keylane.compat;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;

/** A plain socket for requests that no client would send, coded by Kafka's own classes. */
final class Connection implements AutoCloseable {
    private static final int ANSWER_MS_MAX = 15_000;
    private static final int CONNECT_MS_MAX = 5_000;

    private final Socket socket = new Socket();
    private final DataInputStream in;
    private final DataOutputStream out;
    private int correlationId = 0;

    Connection(String bootstrap) throws IOException {
        int colon = bootstrap.lastIndexOf(':');
        int port = Integer.parseInt(bootstrap.substring(colon + 1));
        socket.connect(new InetSocketAddress(bootstrap.substring(0, colon), port), CONNECT_MS_MAX);
        socket.setSoTimeout(ANSWER_MS_MAX);
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    <T extends AbstractResponse> T ask(Class<T> kind, AbstractRequest request) throws IOException {
        RequestHeader header = send(request);
        return kind.cast(AbstractResponse.parseResponse(ByteBuffer.wrap(frame()), header));
    }

    RequestHeader send(AbstractRequest request) throws IOException {
        ApiKeys key = request.apiKey();
        var header = new RequestHeader(key, request.version(), "raw", ++correlationId);
        ByteBuffer buffer = request.serializeWithHeader(header);
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        sendFrame(bytes);
        return header;
    }

    void sendFrame(byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
        out.flush();
    }

    void sendBytes(byte[] bytes) throws IOException {
        out.write(bytes);
        out.flush();
    }

    byte[] frame() throws IOException {
        return in.readNBytes(in.readInt());
    }

    /** True if the broker ends the connection without sending anything more. */
    boolean isEnded() {
        try {
            return in.read() < 0;
        } catch (SocketTimeoutException error) {
            return false;
        } catch (IOException error) {
            return true;
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
