import os
from collections.abc import Iterator

import pytest
import torch

from dcplint.harness.job import Job
from dcplint.harness.pool import Pool
from dcplint.harness.verify import Verifier

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_pool() -> Iterator[Pool]:
    """One zygote for all tests that do not need one of their own.

    Beside other workers one probe at a time: none is begun that an earlier one makes needless.
    """
    with Pool(jobs=1 if "PYTEST_XDIST_WORKER" in os.environ else 2) as pool:
        yield pool


@pytest.fixture(scope="session")
def verifier(shared_pool: Pool) -> Verifier:
    """Four ranks. One for all tests, so that each control runs once."""
    return Verifier(shared_pool, Job("", "", world_size=4))
