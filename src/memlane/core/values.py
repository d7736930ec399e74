"""Dataclasses and named tuples that a command makes quickly: what is used here of them, with the same meaning.

`dataclasses` imports `inspect`, and compiles half a dozen functions for every class. That was a fifth of what a hook
took before it had read a file. Here only `__init__` is compiled, when it is first called; the other methods are shared
by all classes. What asks `dataclasses` itself about such a class (`asdict`, a user's `replace`) gets the answer: see
`_Told`. And what is asked here about a class of `dataclasses` is answered by it.

`typing.NamedTuple` compiles a function for every class, and every annotation. Here it is compiled when the first value
is made.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # to a type checker they are the ones of the standard library
    from dataclasses import asdict, astuple, dataclass, field, fields, is_dataclass, replace
    from typing import NamedTuple

__all__ = ["NamedTuple", "asdict", "astuple", "dataclass", "field", "fields", "is_dataclass", "replace"]

if not TYPE_CHECKING:
    from _collections import _tuplegetter

    _MISSING = object()

    class _Field:
        __slots__ = ("compare", "default", "factory", "hash", "name", "repr", "type")

        def __init__(self, default, factory, compare, hash, repr):
            self.default, self.factory, self.compare, self.hash, self.repr = default, factory, compare, hash, repr

    def field(*, default=_MISSING, default_factory=_MISSING, compare=True, hash=None, repr=True):
        return _Field(default, default_factory, compare, hash, repr)

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False):
        def made(cls):
            return _made(cls, frozen, slots, kw_only)

        return made if cls is None else made(cls)

    def _known(of):
        """The fields of a class that was made here; None for any other, were it but a dataclass below one of ours."""
        for base in (of if isinstance(of, type) else type(of)).__mro__:
            if "_fields_" in base.__dict__:
                return base._fields_
            if "__dataclass_fields__" in base.__dict__:
                break
        return None

    def fields(of):
        if (known := _known(of)) is not None:
            return tuple(known.values())
        from dataclasses import fields

        return fields(of)

    def is_dataclass(of):
        return hasattr(of, "_fields_") or hasattr(of, "__dataclass_fields__")

    def replace(value, /, **changes):
        if (known := _known(value)) is None:
            from dataclasses import replace

            return replace(value, **changes)
        for name in known:
            if name not in changes:
                changes[name] = getattr(value, name)
        return type(value)(**changes)

    def asdict(value):
        from dataclasses import asdict

        return asdict(value)

    def astuple(value):
        from dataclasses import astuple

        return astuple(value)

    class _Told:
        """An attribute by which `dataclasses` knows its classes; made when somebody first asks for it."""

        def __init__(self, name, **params):
            self.name, self.params = name, params

        def __get__(self, value, cls):
            from dataclasses import field, make_dataclass

            told = []
            for known in cls._fields_.values():
                given = {"compare": known.compare, "hash": known.hash, "repr": known.repr}
                if known.default is not _MISSING:
                    given["default"] = known.default
                if known.factory is not _MISSING:
                    given["default_factory"] = known.factory
                told.append((known.name, known.type, field(**given)))
            twin = make_dataclass(cls.__name__, told, **self.params)
            owner = next(base for base in cls.__mro__ if base.__dict__.get(self.name) is self)
            setattr(owner, self.name, getattr(twin, self.name))
            return getattr(twin, self.name)

    def _made(cls, frozen, slots, kw_only):
        known = dict(getattr(cls, "_fields_", ()))
        for name, type_ in cls.__annotations__.items():
            if type_.startswith("ClassVar"):
                continue
            given = cls.__dict__.get(name, _MISSING)
            own = given if isinstance(given, _Field) else _Field(given, _MISSING, True, None, True)
            own.name, own.type = name, type_
            known[name] = own
        if slots:
            cls = _slotted(cls, known)
        else:
            for name, own in known.items():
                if own.default is not _MISSING:
                    setattr(cls, name, own.default)
                elif name in cls.__dict__:
                    delattr(cls, name)
        cls._fields_ = known
        cls.__match_args__ = () if kw_only else tuple(known)
        cls.__init__ = _init_later(cls, known, frozen, slots, kw_only)
        names = [own.name for own in known.values() if own.compare]
        hashed = [own.name for own in known.values() if (own.compare if own.hash is None else own.hash)]
        methods = {"__repr__": _repr, "__eq__": _eq_of(names), "__replace__": replace}
        if frozen:
            methods |= {"__hash__": _hash_of(hashed), "__setattr__": _refuse_set, "__delattr__": _refuse_delete}
            if slots:
                methods |= {"__getstate__": _state, "__setstate__": _set_state}
        else:
            methods["__hash__"] = None
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:  # a class with its own __eq__ has __hash__ = None
                setattr(cls, name, method)
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(cls, name, _Told(name, frozen=frozen, kw_only=kw_only))
        return cls

    def _slotted(cls, known):
        inherited = {name for base in cls.__mro__[1:] for name in getattr(base, "__slots__", ())}
        content = {name: value for name, value in cls.__dict__.items() if name not in known}
        content["__slots__"] = tuple(name for name in known if name not in inherited)
        content.pop("__dict__", None)
        content.pop("__weakref__", None)
        return type(cls)(cls.__name__, cls.__bases__, content)

    def _init_later(cls, *how):
        """An `__init__` that makes the real one when the first value is made: most classes of a command get none."""

        def init(self, *args, **given):
            cls.__init__ = _init(cls, *how)
            cls.__init__(self, *args, **given)

        return init

    def _init(cls, known, frozen, slots, kw_only):
        """`__init__`, compiled. A slot is set by its own descriptor: that is quicker than `setattr`, frozen or not."""
        taken, body, names = ["self"], [], {"_missing": _MISSING}
        if kw_only and known:
            taken.append("*")
        for name, own in known.items():
            value = name
            if own.factory is not _MISSING:
                names[f"_make_{name}"] = own.factory
                taken.append(f"{name}=_missing")
                value = f"_make_{name}() if {name} is _missing else {name}"
            elif own.default is not _MISSING:
                names[f"_default_{name}"] = own.default
                taken.append(f"{name}=_default_{name}")
            else:
                taken.append(name)
            if slots:
                names[f"_set_{name}"] = getattr(cls, name).__set__
                body.append(f" _set_{name}(self, {value})")
            elif frozen:
                body.append(f" object.__setattr__(self, {name!r}, {value})")
            else:
                body.append(f" self.{name} = {value}")
        exec("\n".join([f"def __init__({', '.join(taken)}):", *(body or [" pass"])]), names)  # noqa: S102 - our names
        made = names["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        made.__module__ = cls.__module__
        made.__annotations__ = {name: own.type for name, own in known.items()} | {"return": "None"}
        return made

    def _repr(self):
        shown = (f"{own.name}={getattr(self, own.name)!r}" for own in self._fields_.values() if own.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _eq_of(names):
        key = attrgetter(*names) if names else type

        def equal(self, other):
            return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

        return equal

    def _hash_of(names):
        key = attrgetter(*names) if names else type

        def hashed(self):
            return hash(key(self))

        return hashed

    def _refuse_set(self, name, value):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_delete(self, name):
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self):
        return [getattr(self, name) for name in self._fields_]

    def _set_state(self, state):
        for name, value in zip(self._fields_, state, strict=True):
            object.__setattr__(self, name, value)

    class _Named(type):
        """Makes a class of named tuples of what stands below `NamedTuple`."""

        def __new__(mcs, name, bases, content):
            if not bases:  # `NamedTuple` itself
                return super().__new__(mcs, name, bases, content)
            known = tuple(content.get("__annotations__", ()))
            defaults = {name: content.pop(name) for name in known if name in content}
            content |= {name: _tuplegetter(at, None) for at, name in enumerate(known)}
            content |= {"__slots__": (), "__match_args__": known, "_fields": known, "_field_defaults": defaults}
            content = {**_named, **content}
            made = type(name, (tuple,), content)
            made.__new__ = staticmethod(_new_later(made, known, defaults))
            return made

    class NamedTuple(metaclass=_Named):
        pass

    def _new_later(cls, *how):
        """A `__new__` that makes the real one when the first value is made."""

        def new(of, *args, **given):
            cls.__new__ = staticmethod(_new(cls, *how))
            return cls.__new__(of, *args, **given)

        return new

    def _new(cls, known, defaults):
        taken = ", ".join(f"{name}=_defaults[{name!r}]" if name in defaults else name for name in known)
        values = ", ".join(known) + "," * bool(known)
        names = {"_tuple": tuple.__new__, "_defaults": defaults}
        exec(f"def __new__(_cls, {taken}): return _tuple(_cls, ({values}))", names)  # noqa: S102 - our names
        made = names["__new__"]
        made.__qualname__ = f"{cls.__qualname__}.__new__"
        made.__module__ = cls.__module__
        return made

    def _tuple_repr(self):
        shown = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({', '.join(shown)})"

    def _tuple_replace(self, /, **changes):
        values = [changes.pop(name, value) for name, value in zip(self._fields, self, strict=True)]
        if changes:
            raise TypeError(f"Got unexpected field names: {list(changes)!r}")
        return self._make(values)

    def _make(cls, values):
        made = tuple.__new__(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    _named = {
        "__repr__": _tuple_repr,
        "__getnewargs__": lambda self: tuple(self),
        "__replace__": _tuple_replace,
        "_replace": _tuple_replace,
        "_make": classmethod(_make),
        "_asdict": lambda self: dict(zip(self._fields, self, strict=True)),
    }
