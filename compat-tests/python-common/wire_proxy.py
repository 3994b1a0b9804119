"""Stands between a client and the broker and notes which offsets the client fetches and commits."""

import socket
import struct
import threading
import time
from collections import namedtuple

# One partition of a Fetch or an OffsetCommit request.
Asked = namedtuple("Asked", "at is_commit partition offset")

FETCH, OFFSET_COMMIT = 1, 8


class Proxy:
    """Shows itself to the client as the broker, by writing its own port into answers that name the
    broker's address: Metadata and FindCoordinator write the host and right behind it the port."""

    def __init__(self, bootstrap):
        host, port = bootstrap.rsplit(":", 1)
        self._broker = (host, int(port))
        self._listener = socket.create_server((host, 0))
        own_port = self._listener.getsockname()[1]
        self.address = f"{host}:{own_port}"
        self._hidden = host.encode() + struct.pack(">i", int(port))
        self._shown = host.encode() + struct.pack(">i", own_port)
        self._sockets = [self._listener]
        self.asked = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for each in self._sockets:
            each.close()

    def since(self, start):
        return [each for each in self.asked if each.at >= start]

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
            except OSError:
                return
            self._sockets += [client, broker]
            for pair in ((client, broker, self._note), (broker, client, self._show)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    def _show(self, frame):
        return frame.replace(self._hidden, self._shown)

    def _note(self, frame):
        at = time.monotonic()
        fields = Fields(frame)
        key, version = fields.unpack(">hh")
        fields.unpack(">i")
        fields.skip_text(False)
        if key == FETCH:
            self.asked += [Asked(at, False, *place) for place in fetch_places(fields, version)]
        elif key == OFFSET_COMMIT:
            self.asked += [Asked(at, True, *place) for place in commit_places(fields, version)]
        return frame


def pump(source, target, change):
    """Carries whole frames from one side to the other until either ends."""
    try:
        while True:
            size = source.recv(4, socket.MSG_WAITALL)
            if len(size) < 4:
                break
            (length,) = struct.unpack(">i", size)
            target.sendall(size + change(source.recv(length, socket.MSG_WAITALL)))
    except OSError:
        pass
    finally:
        source.close()
        target.close()


class Fields:
    """Takes fields off the front of a request."""

    def __init__(self, data):
        self._data = data
        self._at = 0

    def unpack(self, layout):
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values

    def skip(self, count):
        self._at += count

    def uvarint(self):
        value = shift = 0
        while True:
            (byte,) = self.unpack(">B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def count(self, is_flexible):
        return self.uvarint() - 1 if is_flexible else self.unpack(">i")[0]

    def skip_text(self, is_flexible):
        self.skip(max(self.uvarint() - 1 if is_flexible else self.unpack(">h")[0], 0))

    def skip_tags(self):
        for _ in range(self.uvarint()):
            self.uvarint()
            self.skip(self.uvarint())


def fetch_places(fields, version):
    """Partitions and offsets of a Fetch request of any version up to 18 behind its header."""
    is_flexible = version >= 12
    if is_flexible:
        fields.skip_tags()
    fields.skip(8 + 4 * (version < 15) + 4 * (version >= 3) + (version >= 4) + 8 * (version >= 7))
    for _ in range(fields.count(is_flexible)):
        if version >= 13:
            fields.skip(16)
        else:
            fields.skip_text(is_flexible)
        for _ in range(fields.count(is_flexible)):
            (partition,) = fields.unpack(">i")
            fields.skip(4 * (version >= 9))
            (offset,) = fields.unpack(">q")
            fields.skip(4 * (version >= 12) + 8 * (version >= 5) + 4)
            if is_flexible:
                fields.skip_tags()
            yield partition, offset
        if is_flexible:
            fields.skip_tags()


def commit_places(fields, version):
    """Partitions and offsets of an OffsetCommit request of version 2 to 10 behind its header."""
    is_flexible = version >= 8
    if is_flexible:
        fields.skip_tags()
    fields.skip_text(is_flexible)
    fields.skip(4)
    fields.skip_text(is_flexible)
    if version >= 7:
        fields.skip_text(is_flexible)
    if version <= 4:
        fields.skip(8)
    for _ in range(fields.count(is_flexible)):
        if version >= 10:
            fields.skip(16)
        else:
            fields.skip_text(is_flexible)
        for _ in range(fields.count(is_flexible)):
            partition, offset = fields.unpack(">iq")
            fields.skip(4 * (version >= 6))
            fields.skip_text(is_flexible)
            if is_flexible:
                fields.skip_tags()
            yield partition, offset
        if is_flexible:
            fields.skip_tags()
