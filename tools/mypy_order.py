"""mypy plugin: nothing in the package iterates over a set.

The order of a set of strings differs from process to process, and order is part of the answer:
two runs of a seed print the same trace.  Types are needed to see it, so this is mypy's work:
whatever asks a set for its elements one after the other is an error, and `sorted()` the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.plugin import FunctionContext, MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

SETS: Final = (
    "builtins.set",
    "builtins.frozenset",
    "typing.AbstractSet",
    "typing.MutableSet",
)

# Functions and methods whose result has the order of what they are given.
ORDERED_FUNCTIONS: Final = (
    "<list>",
    "<tuple>",
    "builtins.list",
    "builtins.tuple",
    "builtins.enumerate",
    "builtins.zip",
    "builtins.map",
    "builtins.filter",
    "builtins.iter",
    "builtins.reversed",
    "builtins.dict.fromkeys",
    "itertools.chain",
    "itertools.islice",
    "collections.deque",
)
ORDERED_METHODS: Final = (
    "builtins.dict.fromkeys",
    "builtins.list.extend",
    "builtins.str.join",
    "builtins.bytes.join",
)

SENTENCE: Final = "a set has no order that two runs share; iterate over sorted(...) of it"


class OrderPlugin(Plugin):
    """Reports sets that are iterated."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        owner, _, method = fullname.rpartition(".")
        if method in ("__iter__", "pop") and owner in SETS:
            return refuse_method
        if fullname in ORDERED_METHODS:
            return refuse_set_argument
        return None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        return refuse_set_argument if fullname in ORDERED_FUNCTIONS else None


def refuse_method(context: MethodContext) -> Type:
    if is_product(context.api.path):
        context.api.fail(SENTENCE, context.context)
    return context.default_return_type


def refuse_set_argument(context: FunctionContext | MethodContext) -> Type:
    if is_product(context.api.path):
        for types in context.arg_types:
            if any(is_set(each) for each in types):
                context.api.fail(SENTENCE, context.context)
    return context.default_return_type


def is_product(path: str) -> bool:
    return "tests/" not in path and "tools/" not in path


def is_set(type_: Type) -> bool:
    proper = get_proper_type(type_)
    if isinstance(proper, UnionType):
        return any(is_set(item) for item in proper.items)
    return isinstance(proper, Instance) and proper.type.fullname in SETS


def plugin(version: str) -> type[Plugin]:
    return OrderPlugin
