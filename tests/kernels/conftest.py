import torch

from dcplint.harness.interpreter import repair_bf16, speed_up

torch.set_num_threads(1)
repair_bf16()
speed_up()
