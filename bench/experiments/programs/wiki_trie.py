"""Serves pages of an encyclopedia by title: a trie gives each title's offset in one big file.

``wiki_trie.py make FOLDER TITLES`` writes that file, with made titles and texts, and the trie.
``wiki_trie.py INDEX FOLDER`` serves: INDEX is `trie`, or `list` for a sorted list without any
module in C for it. /offsets/PREFIX has the first and last byte of each page whose title begins so,
/wiki/TITLE the page itself. Says whether this Python has a GIL after all imports.
"""

import json
import os
import string
import sys
import threading
from bisect import bisect_left
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import numpy as np
from talk import next_line, say

WORDS = ("Python", "Monty", "Parallel", "Convoy", "Lock", "Thread", "Trie", "Offset")
TEXT_BYTES = 600
BEFORE, AFTER = 7, 11
"""From the line of a title back to the page's first byte, and from the next one to its last."""


def title_of(number):
    """Return a title: a word, and the number in letters."""
    letters = "".join(string.ascii_lowercase[number // 26**place % 26] for place in range(4))
    return f"{WORDS[number % len(WORDS)]} {letters}"


def page_of(title):
    text = (title + ". ") * (TEXT_BYTES // (len(title) + 2))
    return f"  <page>\n    <title>{title}</title>\n    <text>{text}</text>\n  </page>\n"


def make(folder, count):
    """Write pages, offsets and trie."""
    from datrie import Trie  # Only here, so that the other index does without it.

    trie, offsets, at = Trie(string.ascii_letters + " "), [], 0
    with open(os.path.join(folder, "pages.xml"), "w") as pages:
        for title in sorted(map(title_of, range(count))):
            page = page_of(title)
            offsets.append(at + page.index("    <title>"))
            trie[title] = offsets[-1]
            pages.write(page)
            at += len(page)
        offsets.append(at + len("  <page>\n"))
    np.save(os.path.join(folder, "offsets.npy"), np.array(offsets, dtype=np.uint64))
    trie.save(os.path.join(folder, "titles.trie"))


class ByTrie:
    """Titles by prefix from datrie, as in the source."""

    def __init__(self, folder):
        from datrie import Trie  # It switches the GIL of a free-threaded build on.

        self.trie = Trie.load(os.path.join(folder, "titles.trie"))

    def beginning(self, prefix):
        return self.trie.items(prefix)


class ByList:
    """The same from a sorted list: Python alone."""

    def __init__(self, folder):
        with open(os.path.join(folder, "pages.xml")) as pages:
            titles = [line[11:-9] for line in pages if line.startswith("    <title>")]
        offsets = np.load(os.path.join(folder, "offsets.npy")).tolist()
        self.titles, self.offsets = titles, offsets

    def beginning(self, prefix):
        place, found = bisect_left(self.titles, prefix), []
        while place < len(self.titles) and self.titles[place].startswith(prefix):
            found.append((self.titles[place], self.offsets[place]))
            place += 1
        return found


INDEXES = {"trie": ByTrie, "list": ByList}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    index = offsets = pages = None

    def do_GET(self):
        _, kind, what = self.path.split("/", 2)
        found = self.with_ends(unquote(what))
        if kind == "wiki":
            found = [each for each in found if each[0] == unquote(what)]
            body = self.read(*found[0][1:]) if found else b""
        else:
            body = json.dumps(found).encode()
        status = b"200 OK" if found else b"404 Not Found"
        self.wfile.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body)

    def with_ends(self, prefix):
        """Return [title, first byte, last byte] of each page whose title begins so."""
        found = []
        for title, offset in self.index.beginning(prefix):
            # An integer of Python's would have the whole array converted at each look.
            after = self.offsets.searchsorted(np.uint64(offset), side="right")
            found.append([title, offset - BEFORE, int(self.offsets[after]) - AFTER])
        return found

    def read(self, first, last):
        return os.pread(self.pages, last + 1 - first, first)

    def log_message(self, *_):
        pass


def main():
    kind, folder = sys.argv[1], sys.argv[2]
    if kind == "make":
        make(folder, int(sys.argv[3]))
        say(made=int(sys.argv[3]))
        return
    Handler.index = INDEXES[kind](folder)
    Handler.offsets = np.load(os.path.join(folder, "offsets.npy"))
    Handler.pages = os.open(os.path.join(folder, "pages.xml"), os.O_RDONLY)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    say(port=server.server_address[1], pid=os.getpid(), has_gil=has_gil)
    next_line()


if __name__ == "__main__":
    main()
