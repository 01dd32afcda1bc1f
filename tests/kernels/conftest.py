import torch

from dcplint.harness import bf16
from dcplint.harness.faster import speed_up

torch.set_num_threads(1)
bf16.repair()
speed_up()
