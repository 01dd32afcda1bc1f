# engine: vllm==0.30.0
"""What is handed on is changed in place first, or is where a function is told to write."""

from dataclasses import dataclass
from typing import Any

import torch

from vllm.v1.attention import backend
from vllm.v1.attention.backend import CommonAttentionMetadata as Common


@dataclass
class WindowMetadata:
    block_table: torch.Tensor
    lengths: torch.Tensor | None = None


class WindowMetadataBuilder(backend.AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: Common, fast_build=False) -> Any:
        return WindowMetadata(
            block_table=common_attn_metadata.block_table_tensor.clamp_(min=0)  # expect: DCP206 note
        )


class ShortenedMetadataBuilder(backend.AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: Common, fast_build=False) -> Any:
        lengths = common_attn_metadata.seq_lens.clone()
        torch.sub(lengths, self.sink_len, out=lengths)  # expect: DCP206
        return WindowMetadata(common_attn_metadata.block_table_tensor, lengths)


class RenamedMetadataBuilder(backend.AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: Common, fast_build=False) -> Any:
        cm = common_attn_metadata
        slots = self.slots(
            cm.slot_mapping,
            cm.block_table_tensor.clamp_(min=0),  # expect: DCP206 note
        )
        return WindowMetadata(slots)
