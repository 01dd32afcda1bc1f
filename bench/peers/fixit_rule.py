"""The same question as a Fixit 2 rule."""

import libcst as cst
from fixit import LintRule

_BASES = {"AttentionImpl", "MLAAttentionImpl", "MLACommonImpl", "SparseMLACommonImpl"}


class ImplicitCapability(LintRule):
    MESSAGE = "class derives from an attention impl base and does not state supports_dcp"

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        names = {self._name(base.value) for base in node.bases}
        if names & _BASES and "supports_dcp" not in cst.Module([node]).code:
            self.report(node)

    @staticmethod
    def _name(node: cst.BaseExpression) -> str:
        if isinstance(node, cst.Subscript):
            node = node.value
        if isinstance(node, cst.Attribute):
            return node.attr.value
        return node.value if isinstance(node, cst.Name) else ""
