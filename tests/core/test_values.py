"""A value class behaves as one of `dataclasses` does, and is one to whoever asks; a named tuple as one of `typing`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from memlane.core.values import NamedTuple, asdict, astuple, dataclass, field, fields, is_dataclass, replace


@dataclass(frozen=True, slots=True)
class Place:
    name: str
    tags: list[str] = field(default_factory=list, hash=False)
    seen: int = field(default=0, compare=False)
    secret: str = field(default="", repr=False)
    kind: ClassVar[str] = "place"


@dataclass(frozen=True, slots=True)
class House(Place):
    rooms: int = 1


@dataclass(slots=True)
class Counter:
    n: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    name: str
    after: str | None = None


class Point(NamedTuple):
    """Where it is."""

    x: int
    y: int = 7

    @property
    def sum(self) -> int:
        return self.x + self.y


class Spot(Point):
    def doubled(self) -> int:
        return 2 * self.x


@dataclass
class Plain:
    n: int
    more: dict[str, int] = field(default_factory=dict)


def test_a_value_is_made_shown_compared_and_hashed_like_a_dataclass():
    one = Place("Oslo", ["a"], 3, "hidden")
    assert repr(one) == "Place(name='Oslo', tags=['a'], seen=3)"
    assert one == Place("Oslo", ["a"], 9, "hidden")
    assert one != Place("Oslo", ["b"], 3, "hidden")
    assert one != ("Oslo", ["a"], 3, "hidden")
    assert hash(one) == hash(Place("Oslo", ["b"], 4, "hidden"))
    assert Place("Oslo").tags is not Place("Oslo").tags
    assert House("Oslo", rooms=2) == House("Oslo", [], 0, "", 2)
    assert House("Oslo") != Place("Oslo")
    assert Place.kind == "place"


def test_a_frozen_value_refuses_changes_and_what_is_not_a_field():
    one: Any = Place("Oslo")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.name = "Rome"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    with pytest.raises(TypeError):
        Place("Oslo", height=3)
    with pytest.raises(TypeError):
        Named("Oslo")


def test_a_value_that_is_not_frozen_changes_and_has_no_hash():
    counter = Counter()
    counter.n += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError):
        hash(counter)
    assert Plain(1) == Plain(1, {})
    assert not hasattr(Plain(1), "__slots__")


def test_a_value_is_copied_and_replaced():
    house = House("Oslo", ["a"], rooms=3)
    assert replace(house, name="Rome") == House("Rome", ["a"], rooms=3)
    assert copy.deepcopy(house) == house
    assert pickle.loads(pickle.dumps(house)) == house
    with pytest.raises(TypeError):
        replace(house, height=3)


def test_the_standard_library_takes_it_for_a_dataclass():
    house = House("Oslo", ["a"], rooms=3)
    assert dataclasses.is_dataclass(House)
    assert dataclasses.asdict(house) == asdict(house)
    assert asdict(house) == {"name": "Oslo", "tags": ["a"], "seen": 0, "secret": "", "rooms": 3}
    assert astuple(house) == ("Oslo", ["a"], 0, "", 3)
    assert dataclasses.replace(house, rooms=4) == House("Oslo", ["a"], rooms=4)
    assert [known.name for known in dataclasses.fields(house)] == [known.name for known in fields(house)]

    @dataclasses.dataclass(frozen=True)
    class Villa(House):
        pool: bool = True

    assert Villa("Oslo").pool
    assert [known.name for known in fields(Villa)] == ["name", "tags", "seen", "secret", "rooms", "pool"]
    assert replace(Villa("Oslo"), name="Rome", pool=False) == Villa("Rome", pool=False)


def test_a_dataclass_of_the_standard_library_is_taken_as_well():
    @dataclasses.dataclass(frozen=True)
    class Other:
        n: int
        text: str = ""

    class Below(House):
        pass

    assert replace(Other(1), text="a") == Other(1, "a")
    assert [known.name for known in fields(Other(1))] == ["n", "text"]
    assert [is_dataclass(one) for one in (Other, Other(1), House, Below("Oslo"), str, ("a",))] == [True] * 4 + [
        False
    ] * 2
    assert replace(Below("Oslo"), rooms=2).rooms == 2


def test_what_the_standard_library_is_told_of_a_class_is_made_once():
    of_house = House.__dataclass_fields__
    assert House.__dataclass_fields__ is of_house
    assert list(Place.__dataclass_fields__) == [own.name for own in fields(Place)]
    assert list(of_house) == [own.name for own in fields(House)]


def test_a_named_tuple_is_made_shown_and_compared_as_one_of_typing():
    point = Point(3)
    assert (point, repr(point), point.x, point.sum, Point(y=1, x=2)) == ((3, 7), "Point(x=3, y=7)", 3, 10, (2, 1))
    assert (Point._fields, Point._field_defaults, Point.__doc__) == (("x", "y"), {"y": 7}, "Where it is.")
    assert (point._replace(y=1), point._asdict(), Point._make([1, 2])) == ((3, 1), {"x": 3, "y": 7}, (1, 2))
    assert [type(made) for made in (point._replace(x=1), Point._make([1, 2]), copy.copy(point))] == [Point] * 3
    assert pickle.loads(pickle.dumps(point)) == point
    assert (Spot(4).doubled(), repr(Spot(4)), type(Spot(4)._replace(x=1))) == (8, "Spot(x=4, y=7)", Spot)
    match point:
        case Point(x, y):
            assert (x, y) == (3, 7)


@pytest.mark.parametrize("given", [(), (1, 2, 3)])
def test_a_named_tuple_refuses_too_few_and_too_many_values(given: Any):
    with pytest.raises(TypeError):
        Point(*given)
    with pytest.raises(TypeError):
        Point._make(given)


def test_a_named_tuple_refuses_what_is_not_a_field():
    point: Any = Point(1)
    with pytest.raises(TypeError):
        point._replace(z=1)


def test_a_named_tuple_cannot_be_changed():
    point: Any = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2
    with pytest.raises(AttributeError):
        point.z = 2
