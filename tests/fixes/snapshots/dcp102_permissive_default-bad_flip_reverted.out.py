# engine: vllm==0.30.0
# file: vllm/v1/attention/backend.py
"""The default is turned on again in a release whose selection asks it."""

from abc import ABC, abstractmethod


class AttentionImplBase(ABC):
    can_return_lse_for_decode: bool = False
    supports_dcp: bool = True  # expect: DCP102


class AttentionImpl(AttentionImplBase):
    @abstractmethod
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output): ...


class SilentImpl(AttentionImpl):  # expect: DCP101 error
    supports_dcp: bool = False

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        return output.copy_(query)


class AttentionBackend(ABC):
    @classmethod
    def supports_dcp(cls) -> bool:
        return cls.get_impl_cls().supports_dcp

    @staticmethod
    @abstractmethod
    def get_impl_cls(): ...
