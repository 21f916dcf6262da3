"""A game on a shared map: players toggle walls and ask for shortest paths.

``astar_game.py ARM PLAYERS TURNS``: ARM is `threads` (four of them), `alone` (one thread plays
for all) or `processes` (four, on a map in shared memory). Each player's turns come from a seed,
and toggling a wall twice undoes it: the map at the end is the same in every arm.
"""

import heapq
import multiprocessing
import os
import random
import sys
import threading
import zlib

from talk import CLOCK, next_line, say

SIZE = 24
WORKERS = 4
WALLS_BEFORE = 100


def find_path(cells, start, goal):
    """Return the length of a shortest path, None where there is none."""
    heap = [(0, 0, start)]
    best = {start: 0}
    while heap:
        _, steps, place = heapq.heappop(heap)
        if place == goal:
            return steps
        row, column = divmod(place, SIZE)
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            there_row, there_column = row + down, column + right
            if not (0 <= there_row < SIZE and 0 <= there_column < SIZE):
                continue
            there = there_row * SIZE + there_column
            if cells[there] or best.get(there, SIZE * SIZE) <= steps + 1:
                continue
            best[there] = steps + 1
            left = abs(there_row - goal // SIZE) + abs(there_column - goal % SIZE)
            heapq.heappush(heap, (steps + 1 + left, steps + 1, there))
    return None


def play(cells, lock, players, turns, asked):
    """Play the turns of these players, and note how many paths were asked for."""
    chances = [random.Random(player) for player in players]
    count = 0
    for turn in range(turns):
        for chance in chances:
            if turn % 5 == 0:
                place = chance.randrange(SIZE * SIZE)
                with lock:
                    cells[place] ^= 1
            else:
                find_path(cells, chance.randrange(SIZE * SIZE), chance.randrange(SIZE * SIZE))
                count += 1
    asked.append(count)


def play_in_process(cells, lock, players, turns, answers):
    asked = []
    play(cells, lock, players, turns, asked)
    answers.put(asked[0])


def new_map(cells):
    chance = random.Random(0)
    for _ in range(WALLS_BEFORE):
        cells[chance.randrange(SIZE * SIZE)] = 1
    return cells


def start_all(arm, players, turns):
    """Return the map, those who play, and what gives the number of paths asked for."""
    shares = [range(each, players, WORKERS) for each in range(WORKERS)]
    if arm == "processes":
        cells = new_map(multiprocessing.RawArray("b", SIZE * SIZE))
        lock, answers = multiprocessing.Lock(), multiprocessing.Queue()
        workers = [
            multiprocessing.Process(
                target=play_in_process, args=(cells, lock, share, turns, answers)
            )
            for share in shares
        ]
        return cells, workers, lambda: sum(answers.get() for _ in workers)
    cells, lock, asked = new_map(bytearray(SIZE * SIZE)), threading.Lock(), []
    shares = [range(players)] if arm == "alone" else shares
    workers = [
        threading.Thread(target=play, args=(cells, lock, share, turns, asked)) for share in shares
    ]
    return cells, workers, lambda: sum(asked)


def main():
    arm, players, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    say(pid=os.getpid())
    next_line()
    cells, workers, paths_of = start_all(arm, players, turns)
    began_s = CLOCK()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took_s = CLOCK() - began_s
    paths = paths_of()
    say(paths=paths, took_s=took_s, paths_per_s=paths / took_s, checksum=zlib.crc32(bytes(cells)))
    next_line()


if __name__ == "__main__":
    main()
