"""The queue that breaks ties as Java does, and the load of a process."""

from __future__ import annotations

import random

from mockbroker.core.groups.streams.processes import JavaQueue, Process, TaskId


def test_the_order_of_equal_elements_is_that_of_java() -> None:
    """As java.util.PriorityQueue of a, b, c, d, e with equal priorities gives them out."""
    queue = JavaQueue("abcde", lambda _: 0)
    assert [queue.poll() for _ in range(5)] == ["a", "e", "d", "c", "b"]
    assert not queue


def test_equal_elements_among_others_are_in_the_order_of_java() -> None:
    """As java.util.PriorityQueue of Java 17 gives out a to p with these priorities."""
    priorities = [3, 1, 2, 2, 1, 3, 0, 1, 2, 0, 3, 1, 0, 2, 1, 0]
    queue = JavaQueue(range(16), priorities.__getitem__)
    assert "".join("abcdefghijklmnop"[queue.poll()] for _ in range(16)) == "gjpmheblocindafk"


def test_the_least_element_comes_first() -> None:
    rng = random.Random(3)
    numbers = [rng.randrange(50) for _ in range(200)]
    queue = JavaQueue(numbers, float)
    assert [queue.poll() for _ in numbers] == sorted(numbers)


def test_a_process_gives_a_task_to_its_least_loaded_member() -> None:
    process = Process()
    process.add_member("a")
    process.add_member("b")
    assert process.add_task("a", TaskId("0", 0), is_active=True) == 1
    assert process.add_to_least_loaded(TaskId("0", 1), is_active=False) == 1
    assert process.standby == {"b": {TaskId("0", 1)}}
    assert process.load == 1.0
    assert process.has_task(TaskId("0", 1))
    assert not process.has_task(TaskId("0", 2))
