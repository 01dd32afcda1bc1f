# engine: vllm==0.33.0
"""The lengths on the host come from the batch, from the device, or not at all."""

import copy

import torch
from vllm.distributed.parallel_state import get_dcp_group
from vllm.v1.attention.backend import AttentionMetadataBuilder, CommonAttentionMetadata
from vllm.v1.attention.backends.utils import split_decodes_and_prefills


class HostLengthsBuilder(AttentionMetadataBuilder):
    """Whether there are prefills is the batch's affair, where the lengths come from is not."""

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self.sharded = get_dcp_group().world_size > 1
        self.drafts = vllm_config.num_speculative_tokens

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        meta = common_attn_metadata
        decodes, prefills, _, _ = split_decodes_and_prefills(meta)
        wanted = self.sharded or not self.plans_on_device
        host: torch.Tensor | None
        if wanted:
            if self.drafts == 0 and meta.seq_lens_cpu_upper_bound is not None:
                host = meta.seq_lens_cpu_upper_bound
            else:
                host = meta.seq_lens.cpu()
        else:
            host = None
        if self.sharded:
            assert host is not None
            if prefills > 0:
                starts = meta.query_start_loc_cpu[decodes:]
                host[decodes:] = host[decodes:] - (starts[1:] - starts[:-1])  # expect: DCP206
        return host


class RenamingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        batch = common_attn_metadata
        host = batch.seq_lens_cpu_upper_bound.clone()
        host[batch.num_decodes :].sub_(common_prefix_len)  # expect: DCP206
        return host


class DerivedBuilder(RenamingBuilder):
    """What its base class stores is told there."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        return super().build(common_prefix_len, common_attn_metadata).clone()


class AgreeingBuilder(AttentionMetadataBuilder):
    """One question, asked twice."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        shortens = self.shortens
        if shortens:
            lens = common_attn_metadata.seq_lens
        else:
            lens = self.lens
        if self.shortens:
            lens -= common_prefix_len  # expect: DCP206
        return lens


class DeclaringBuilder(AttentionMetadataBuilder):
    """Where it shortens the lengths it has taken them."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        lens: torch.Tensor
        if self.takes_prefills:
            lens = common_attn_metadata.seq_lens.clone()
        if self.shortens:
            lens -= common_prefix_len  # expect: DCP206
        return common_attn_metadata


class BufferingBuilder(AttentionMetadataBuilder):
    """Its own buffer, where graphs are captured; prefills come with and without."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        lens = self.lens if self.captures else common_attn_metadata.seq_lens
        if common_attn_metadata.num_prefills > 0:
            lens -= common_prefix_len  # expect: DCP206
        return lens


class SometimesCopyingBuilder(AttentionMetadataBuilder):
    """It changes a batch of its own for one feature, and everybody's without it."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        if self.use_cascade:
            common_attn_metadata = copy.deepcopy(common_attn_metadata)
        common_attn_metadata.seq_lens_cpu_upper_bound.sub_(common_prefix_len)  # expect: DCP206
        return common_attn_metadata


class PartsBuilder(AttentionMetadataBuilder):
    """What a tensor is split into are views of it, and `out=` stores like any other call."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        sizes = [common_attn_metadata.num_decodes, common_attn_metadata.num_prefills]
        decodes, prefills = common_attn_metadata.seq_lens.split(sizes)
        torch.sub(prefills, common_prefix_len, out=prefills)  # expect: DCP206
        return decodes, prefills


class LoopingBuilder(AttentionMetadataBuilder):
    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        for lens in (common_attn_metadata.seq_lens, common_attn_metadata.seq_lens_cpu_upper_bound):
            lens.sub_(common_prefix_len)  # expect: DCP206
        return common_attn_metadata.seq_lens


def _without_prefix(lens: torch.Tensor, prefix: int) -> torch.Tensor:
    shorter = lens[1:]
    shorter -= prefix
    return lens


class HelpedBuilder(AttentionMetadataBuilder):
    """It leaves the storing to others."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        lens = common_attn_metadata.seq_lens
        lens = _without_prefix(lens, common_prefix_len)  # expect: DCP206
        self.pad(common_attn_metadata, in_place=True)  # expect: DCP206
        return lens

    def pad(self, batch, in_place=False):
        rest = batch.slot_mapping[batch.num_actual_tokens :]
        if in_place:
            rest.fill_(-1)


class TableBuilder(AttentionMetadataBuilder):
    """Only what marks no block is changed, and to what others would change it to."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        return common_attn_metadata.block_table_tensor.clamp_(min=0)  # expect: DCP206 note


class CuttingBuilder(AttentionMetadataBuilder):
    """Lengths that are cut are not those that the next builder expects."""

    def build(self, common_prefix_len, common_attn_metadata: CommonAttentionMetadata):
        common_attn_metadata.block_table_tensor.clamp_(common_prefix_len)  # expect: DCP206
        slots = common_attn_metadata.slot_mapping.clamp_(max=common_prefix_len)  # expect: DCP206
        return common_attn_metadata.seq_lens.clamp_(max=4096), slots  # expect: DCP206
