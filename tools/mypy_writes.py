"""mypy plugin: what `tarry.log` defines is written by `tarry.log` alone.

A log, its segments and its configuration keep invariants between their attributes.  An assignment
from another package goes behind them, and so does a call that changes a list, dictionary or set
that is an attribute there.  What begins with `_` is touched in its own module only, by reads too.
Types are needed to see it, so this is mypy's work: it finds every write whose object has a type,
but not one through another name for the same list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy.nodes import CallExpr, Context, Expression, IndexExpr, MemberExpr
from mypy.plugin import AttributeContext, MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

CLOSED: Final = "tarry.log."
CLOSED_PATH: Final = "tarry/log/"

# Not parts of a log: what partitions and stores inherit as its owners, and what a caller makes for
# one walk or one step of its own.
OPEN: Final = (
    "tarry.log.owner.LogOwner",
    "tarry.log.batch_walk.BatchWalk",
    "tarry.log.compaction.effort.Effort",
)

CONTAINERS: Final = ("builtins.list", "builtins.dict", "builtins.set", "array.array")
CHANGES: Final = (
    *("__setitem__", "__delitem__", "append", "extend", "insert", "remove", "pop", "popitem"),
    *("clear", "sort", "reverse", "update", "setdefault", "add", "discard"),
)

SENTENCE: Final = "tarry.log alone writes here; call a method of the log, or write one"
PRIVATE: Final = "private to its module; call a method of its class, or write one"


class WritesPlugin(Plugin):
    """Reports writes into a log from outside its package."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        if not is_closed(fullname):
            return None
        name = fullname.rpartition(".")[2]
        is_private = name.startswith("_") and not name.startswith("__")
        return PrivateAccess(fullname) if is_private else refuse_assignment

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        owner, _, method = fullname.rpartition(".")
        return refuse_change if owner in CONTAINERS and method in CHANGES else None


class PrivateAccess:
    """Hook that refuses an attribute whose name begins with `_` outside its module."""

    def __init__(self, fullname: str) -> None:
        module, _, _ = fullname.rsplit(".", 2)
        self.home = module.replace(".", "/") + ".py"

    def __call__(self, context: AttributeContext) -> Type:
        if not context.api.path.endswith(self.home) and "tests/" not in context.api.path:
            context.api.fail(PRIVATE, context.context)
        return context.default_attr_type


def refuse_assignment(context: AttributeContext) -> Type:
    if context.is_lvalue and is_outside(context.api.path):
        context.api.fail(SENTENCE, context.context)
    return context.default_attr_type


def refuse_change(context: MethodContext) -> Type:
    container = changed_container(context.context)
    if isinstance(container, MemberExpr) and is_outside(context.api.path):
        owner = context.api.get_expression_type(container.expr)
        if has_closed_type(owner):
            context.api.fail(SENTENCE, context.context)
    return context.default_return_type


def changed_container(changed: Context) -> Expression | None:
    """Return the expression before the brackets or before the name of the method."""
    if isinstance(changed, IndexExpr):
        return changed.base
    if isinstance(changed, CallExpr) and isinstance(changed.callee, MemberExpr):
        return changed.callee.expr
    return None


def has_closed_type(type_: Type) -> bool:
    proper = get_proper_type(type_)
    if isinstance(proper, UnionType):
        return any(has_closed_type(item) for item in proper.items)
    return isinstance(proper, Instance) and is_closed(proper.type.fullname)


def is_closed(fullname: str) -> bool:
    return fullname.startswith(CLOSED) and not fullname.startswith(OPEN)


def is_outside(path: str) -> bool:
    return "tarry/" in path and CLOSED_PATH not in path


def plugin(version: str) -> type[Plugin]:
    return WritesPlugin
