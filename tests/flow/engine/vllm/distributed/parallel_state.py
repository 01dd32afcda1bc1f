"""The process group of decode context parallelism."""


class Group:
    def __init__(self, world_size, rank_in_group):
        self.world_size = world_size
        self.rank_in_group = rank_in_group


_GROUP = Group(2, 0)


def get_dcp_group():
    return _GROUP
