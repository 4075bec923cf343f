"""What is remembered by identity, and by name."""

from __future__ import annotations

from controller.memo import Latest, Memo


def test_a_memo_makes_once_for_one_object_and_again_for_an_equal_one() -> None:
    memo: Memo[list[int], int] = Memo(limit=10)
    calls = []

    def ask(key: list[int]) -> int:
        return memo.get(key, lambda: calls.append(key) or sum(key))

    one, same = [1, 2], [1, 2]
    assert [ask(one), ask(one), ask(same)] == [3, 3, 3]
    assert len(calls) == 2


def test_a_memo_forgets_the_oldest_beyond_its_limit() -> None:
    memo: Memo[list[int], int] = Memo(limit=4)
    keys = [[i] for i in range(5)]
    for key in keys:
        memo.get(key, lambda key=key: key[0])
    remembered = [memo.get(key, lambda: -1) for key in keys[1:]]
    assert remembered == [1, 2, 3, 4]
    assert memo.get(keys[0], lambda: -1) == -1


def test_the_latest_is_kept_by_name_and_the_oldest_names_are_forgotten() -> None:
    latest: Latest[int] = Latest(limit=2)
    assert latest.get("a") is None
    latest.keep("a", 1)
    latest.keep("a", 3)
    assert latest.get("a") == 3
    for name in "bcd":
        latest.keep(name, 9)
    assert latest.get("d") == 9
    assert latest.get("a") is None
