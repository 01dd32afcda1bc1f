"""Running vLLM's attention backends from the engine's own files."""
