import torch

from dcplint.harness.faster import speed_up
from dcplint.harness.interpreter import repair_bf16

torch.set_num_threads(1)
repair_bf16()
speed_up()
