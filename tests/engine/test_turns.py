"""A lock that a thread gets which waits, however often its holder asks again."""

import threading
import time

from mosstalk.turns import FairLock


def test_one_at_a_time() -> None:
    lock, inside, most = FairLock(), [0], [0]

    def work() -> None:
        for _ in range(200):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == ([0], [1])


def test_who_waits_gets_it_before_its_last_holder() -> None:
    lock = FairLock()
    turns, is_done = [0], threading.Event()

    def busy() -> None:
        while not is_done.is_set():
            with lock:
                turns[0] += 1
                time.sleep(0.01)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):
            before = turns[0]
            with lock:
                assert turns[0] <= before + 2
    finally:
        is_done.set()
        thread.join()


def test_an_error_releases_it() -> None:
    lock = FairLock()
    try:
        with lock:
            raise KeyError
    except KeyError:
        pass
    with lock:
        pass
