"""Sends datagrams to an echo server one after the other, and says how long each took.

Arguments: port, how many, after how many seconds to stop all the same.
"""

import socket
import sys
import time

from talk import at_share, say

BYTES = 8192


def main():
    port, messages, limit_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    message = b"x" * BYTES
    took_s = []
    began_s = time.perf_counter()
    while len(took_s) < messages and time.perf_counter() - began_s < limit_s:
        sent_s = time.perf_counter()
        client.send(message)
        if client.recv(BYTES) != message:
            raise SystemExit("another datagram came back")
        took_s.append(time.perf_counter() - sent_s)
    whole_s = time.perf_counter() - began_s
    took_s.sort()
    say(
        echoes=len(took_s),
        client_s=whole_s,
        mb_per_s=BYTES * len(took_s) / whole_s / 1e6,
        p50_ms=1000 * at_share(took_s, 0.5),
        p99_ms=1000 * at_share(took_s, 0.99),
        max_ms=1000 * took_s[-1],
    )


if __name__ == "__main__":
    main()
