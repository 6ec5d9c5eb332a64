import torch

# Two workers on two cores: threads of their own would only fight.
torch.set_num_threads(1)
