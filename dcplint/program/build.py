"""Building the program of one tree for one engine."""

from __future__ import annotations

from dcplint import disk
from dcplint.program.blocked import blocked_modules
from dcplint.program.engine import Engine
from dcplint.program.index import Index
from dcplint.program.link import Linker
from dcplint.program.modules import Modules, SourceTree, Words
from dcplint.program.mro import Hierarchy
from dcplint.program.program import Program
from dcplint.program.related import ranked_modules, related_modules
from dcplint.program.virtual import virtual_modules
from dcplint.source.location import Tree


def build_program(
    index: Index, engine: Engine, unsaved: dict[str, bytes] | None = None, jobs: int = 1
) -> Program:
    """Parse the candidates of `index` and link them with what is known of `engine`.

    jobs: how many processes may share the parsing.
    """
    contract = engine.contract
    project = SourceTree(index.root.directory, Tree.PROJECT, index.modules, unsaved or {})
    trees = [project]
    if engine.directory is not None:
        neutral = frozenset(contract.vocabulary.neutral)
        trees.append(SourceTree(engine.directory, Tree.ENGINE, without=neutral))
    accessors = {accessor.name: accessor.returns for accessor in contract.accessors}
    words = {capability.name for capability in contract.capabilities} | accessors.keys()
    words |= {derived.name for derived in contract.derived}
    modules = Modules(tuple(trees), Words(words), virtual_modules(contract))
    names = index.names
    explicit = {
        path.relative_to(index.root.directory).as_posix()
        for path in index.root.focus
        if disk.is_file(path)
    }
    wanted = [*index.candidates(contract, engine.in_tree), *(explicit & index.scans.keys())]
    checked = modules.load_all(project, {relative: names[relative] for relative in wanted}, jobs)
    linker = Linker(modules, accessors)
    hierarchy = Hierarchy(linker, frozenset(contract.vocabulary.neutral))
    return Program(
        contract,
        modules,
        linker,
        hierarchy,
        tuple(checked),
        lambda: tuple(related_modules(index, modules, contract)),
        lambda: tuple(ranked_modules(index, modules, contract)),
        lambda: tuple(blocked_modules(index, modules, contract)),
    )
