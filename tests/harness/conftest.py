from collections.abc import Iterator

import pytest
import torch

from dcplint.harness.pool import Pool

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_pool() -> Iterator[Pool]:
    """One zygote for all tests that do not need one of their own."""
    with Pool(jobs=4) as pool:
        yield pool
