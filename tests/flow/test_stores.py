"""Which in-place stores go into a record that a function was given."""

from pathlib import Path

import pytest

from dcplint.flow.stores import shared_stores
from tests.flow.laboratory import BACKEND
from tests.flow.program import contexts

_BUILDER = """
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata


class Own(AttentionMetadataBuilder):
    def build(self, common: CommonAttentionMetadata):
        {body}
"""


def _stored(tmp_path: Path, body: str, **modules: str) -> set[tuple[str, str]]:
    """The fields of `common` that `body`, a builder's, stores into; with modules beside it."""
    _write(tmp_path, "vllm/v1/attention/backend.py", BACKEND)
    for name, text in modules.items():
        _write(tmp_path, f"vllm/{name}.py", text)
    _write(tmp_path, "vllm/own.py", _BUILDER.format(body=body.replace("\n", "\n        ")))
    (context,) = contexts(tmp_path, "vllm==0.30.0")
    (field,) = context.fields.fields
    (function,) = (f for f in context.fields.universe.named("build") if f.qualname == "Own.build")
    stores = shared_stores(context.fields, function, field)
    return {(store.record, store.attribute) for store in stores}


def _write(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    "body",
    [
        "count = common.num_reqs\ncount += 1",
        "most: int = common.max_seq_len\nmost -= 1",
        "lens = common.seq_lens\nlens = lens + [1]\nlens += [2]",
        "lens, *rest = [common.num_reqs, *common.seq_lens]\nlens += 1",
        "if self.x:\n    lens = common.seq_lens\nelse:\n    lens, *_ = [*self.y]\n"
        "if self.z:\n    lens -= 1",
        "for lens in zip(common.seq_lens):\n    lens -= 1",
        "lens = common.seq_lens[common.num_reqs]\nlens += [1]",
        "first = common.seq_lens[self.order]\nfirst -= 1",
    ],
)
def test_what_is_not_the_records(tmp_path: Path, body: str) -> None:
    assert _stored(tmp_path, body) == set()


@pytest.mark.parametrize(
    "body",
    [
        "lens = common.seq_lens\nlens += [1]",
        "lens = common.seq_lens\nwhile lens:\n    lens = lens[1:]\n    lens -= 1",
        "if lens := common.seq_lens:\n    lens[0] = 1",
        "a = b = common\nb.seq_lens[1:] = a.num_reqs",
        "(one, two), three = (common, self), 3\none.seq_lens[1:], three = 1, 2",
        "with self.lock:\n    lens = common.seq_lens\nlens[0] = 3",
        "return self.out(common.seq_lens.sub_(1))",
        "match common.num_reqs:\n    case 0:\n        lens = common.seq_lens\n        lens[0] = 1",
        "lens = (common.seq_lens if self.x else None)\nlens -= [1]",
    ],
)
def test_what_is_the_records_under_another_name(tmp_path: Path, body: str) -> None:
    assert _stored(tmp_path, body) == {("common", "seq_lens")}


def test_names_of_names_end(tmp_path: Path) -> None:
    chain = "\n".join(f"n{i + 1} = n{i}" for i in range(40))
    assert _stored(tmp_path, f"n0 = common.seq_lens\n{chain}\nn40 -= [1]") == set()
    loop = "a = common.seq_lens\nb = a\nfor i in self.x:\n    a, b = b, a\nb -= [1]"
    assert _stored(tmp_path, loop) == {("common", "seq_lens")}


def test_what_can_be_too_much_is_not_known(tmp_path: Path) -> None:
    ways = (
        f"if self.f{n}:\n    a = b[1:]\nelif self.g{n}:\n    b = a if self.h{n} else c\n"
        "else:\n    c, a = b, c.view(-1)\n"
        for n in range(60)
    )
    body = "a = b = c = common.seq_lens\n" + "".join(ways) + "a -= [1]"
    assert _stored(tmp_path, body) == set()


def test_helpers_that_call_each_other_end(tmp_path: Path) -> None:
    body = "def one(x): two(x)\n\ndef two(y): one(y)\none(common.seq_lens)"
    assert _stored(tmp_path, body) == set()


_IN_PLACE = "def less(x, k):\n    x -= k\n"


@pytest.mark.parametrize(
    ("how", "called"),
    [
        ("from vllm.far import less as other", "other"),
        ("import vllm.far as other", "other.less"),
        ("from vllm.near import renamed", "renamed"),
        ("from vllm.near import assigned", "assigned"),
        ("from vllm.near import over", "over"),
        ("from vllm import near", "near.over"),
    ],
)
def test_helpers_in_modules_without_a_word_of_the_engine(
    tmp_path: Path, how: str, called: str
) -> None:
    near = (
        "from vllm import far\nfrom vllm.far import less as renamed\nassigned = far.less\n"
        "def over(y, k):\n    renamed(y, k)\n"
    )
    body = f"{how}\n{called}(common.seq_lens, 1)"
    assert _stored(tmp_path, body, far=_IN_PLACE, near=near) == {("common", "seq_lens")}
    other = _IN_PLACE.replace("x -= k", "return x - k")
    assert _stored(tmp_path / "other", body, far=other, near=near) == set()


def test_helpers_that_call_each_other_store(tmp_path: Path) -> None:
    body = "def one(x): two(x)\n\ndef two(y):\n    y -= [1]\n    one(y)\none(common.seq_lens)"
    assert _stored(tmp_path, body) == {("common", "seq_lens")}


@pytest.mark.parametrize(
    "test", ["a is b", "a.data_ptr() == b.data_ptr()", "b.data_ptr() == a.data_ptr()"]
)
def test_a_test_of_what_it_is_says_so_of_one_side_alone(tmp_path: Path, test: str) -> None:
    body = f"a = b = common.seq_lens\nif {test}:\n    {{}}\na -= [1]"
    assert _stored(tmp_path, body.format("a = a.clone()")) == set()
    assert _stored(tmp_path, body.format("self.note(a)")) == {("common", "seq_lens")}
    assert _stored(tmp_path, body.format("return a")) == set()
