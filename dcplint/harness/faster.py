"""Making Triton's interpreter faster, without changing what it computes.

Most of its time goes into what surrounds the arithmetic: types and shapes are made anew for every
value, and looked at again for every operation. Here they are kept. Each patch falls back on the
original, and takes over from it only what depends on nothing else.

The names are private ones of triton 3.9. A release without them is interpreted as it is, and where
it does more than lack them, so that the canaries fail, `slow_down` takes everything back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

# What is put in place of which attribute of what.
_Replacements: TypeAlias = list[tuple[Any, str, Any]]

_replaced: _Replacements = []


def speed_up() -> None:
    """Make interpreting about three times as fast. Nothing may be compiled here afterwards."""
    from triton.runtime import interpreter as it

    if _replaced:
        return
    for patch in (_keep_patches, _trust_integers, _keep_types, _leave_alone_what_fits):
        with suppress(AttributeError, TypeError):
            for owner, name, value in patch(it):
                _replaced.append((owner, name, getattr(owner, name)))
                setattr(owner, name, value)


def slow_down() -> None:
    """Interpret as triton does by itself."""
    while _replaced:
        setattr(*_replaced.pop())


def _keep_patches(it: Any) -> _Replacements:
    """Patch the hundred names of `triton.language` once, not at every launch and every call."""
    patch, language, core = it._patch_lang, it.tl, it.tl.core
    patched: set[int] = set()

    class Kept:
        def restore(self) -> None:
            """Nothing: the patches stay."""

    def patch_once(function: Any) -> Kept:
        languages = {id(v) for v in function.__globals__.values() if v is language or v is core}
        if not languages <= patched:
            patch(function)
            patched.update(languages)
        return Kept()

    return [(it, "_patch_lang", patch_once)]


def _trust_integers(it: Any) -> _Replacements:
    """No compiled kernel computes integers a second time, in 64 bits, to assert their range."""
    return [(it.interpreter_builder, "options", it.InterpreterOptions(sanitize_overflow=False))]


def _keep_types(it: Any) -> _Replacements:
    """Keep what a block type is made of, what its values have from it, and numpy's name for it."""
    core = it.tl.core
    block, value, constexpr = core.block_type, core.tensor, core.constexpr
    make_block, make_value, numpy_dtype = block.__init__, value.__init__, it._get_np_dtype
    sizes_known: dict[Any, dict[str, Any]] = {}
    names: dict[Any, str] = {}
    dtypes: dict[Any, Any] = {}

    def init_block(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = tuple([s.value if type(s) is constexpr else s for s in shape])
        key = (sizes, tuple(map(type, sizes)))  # 16.0 equals 16, and is no size
        name = names.get((element_ty.name, key))
        if name is None:
            make_block(self, element_ty, shape)
            value(None, self)  # leaves its fields with the type
            fields = vars(self).copy()
            del fields["element_ty"]
            name = names[element_ty.name, key] = fields.pop("name")
            sizes_known.setdefault(key, fields)
        vars(self).update(sizes_known[key], element_ty=element_ty, name=name)

    def init_value(self: Any, handle: Any, type: Any) -> None:
        fields = vars(type).get("fields_of_values")
        if fields is None:
            make_value(self, handle, type)
            own = ("handle", "type", "dtype")
            type.fields_of_values = {k: v for k, v in vars(self).items() if k not in own}
        else:
            vars(self).update(fields, handle=handle, type=type, dtype=type.scalar)

    def get_np_dtype(dtype: Any) -> Any:
        key = (type(dtype), dtype.name)
        if key not in dtypes:
            dtypes[key] = numpy_dtype(dtype)
        return dtypes[key]

    return [
        (block, "__init__", init_block),
        (value, "__init__", init_value),
        (it, "_get_np_dtype", get_np_dtype),
    ]


def _leave_alone_what_fits(it: Any) -> _Replacements:
    """Look into constants only where there are any, and broadcast only what differs in shape."""
    core, semantic = it.tl.core, type(it.interpreter_semantic)
    unwrap, broadcast = core._unwrap_if_constexpr, semantic.broadcast_impl_value
    check, cast = semantic.binary_op_type_checking_impl, semantic.cast
    constants, value, numbers = (core.constexpr, core.tuple, list, tuple), core.tensor, core.dtype

    def unwrap_constants(item: Any) -> Any:
        return unwrap(item) if isinstance(item, constants) else item

    def broadcast_others(self: Any, left: Any, right: Any) -> Any:
        # Blocks of the same shape share it, see `_keep_types`.
        if left.shape is right.shape and left.type.is_block():
            return left, right
        return broadcast(self, left, right)

    def cast_others(self: Any, item: Any, dst_ty: Any, *rest: Any) -> Any:
        return item if item.dtype is dst_ty else cast(self, item, dst_ty, *rest)

    def check_others(self: Any, left: Any, right: Any, *rest: Any, **flags: Any) -> Any:
        alike = type(left) is value and type(right) is value and left.dtype is right.dtype
        # Pointers are not added; half precision is divided in single.
        if alike and not rest[3:] and not flags and type(left.dtype) is numbers:
            return self.broadcast_impl_value(left, right)
        return check(self, left, right, *rest, **flags)

    return [
        (core, "_unwrap_if_constexpr", unwrap_constants),
        (semantic, "broadcast_impl_value", broadcast_others),
        (semantic, "cast", cast_others),
        (semantic, "binary_op_type_checking_impl", check_others),
    ]
