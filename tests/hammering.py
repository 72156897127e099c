"""Eight threads that do the same thing at once, and switch as often as the interpreter lets them."""

import sys
import threading
from contextlib import contextmanager

THREADS = 8


@contextmanager
def restless():
    """Threads switch at every opportunity."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def hammered(work, threads=THREADS):
    """What `work(number)` gives in each of several threads; the first exception of one of them is raised."""
    results, problems, start = [None] * threads, [], threading.Barrier(threads)

    def run(number):
        try:
            start.wait()
            results[number] = work(number)
        except BaseException as problem:
            problems.append(problem)

    with restless():
        running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(120)  # a deadlock fails the test instead of stopping it
            assert not thread.is_alive()
    if problems:
        raise problems[0]
    return results
