"""The same in torch; ``rng`` is torch's default generator."""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import multinomial, rand


def residual(p, q):
    left = F.relu(p - q)
    return left / left.sum()


def item(target, draft, candidates, rng):
    x = int(candidates[0])
    if torch.rand(1).item() < target[x] / draft[x]:
        return x
    return multinomial(residual(target, draft), 1)


def truth_of_a_tensor(target, draft, candidates, rng):
    x = candidates[0]
    if rand((), dtype=target.dtype) * draft[x] < target[x]:
        return x
    return torch.multinomial(residual(target, draft), 1, generator=rng).item()


def rand_like(target, draft, candidates, rng):
    ratio = (target / draft)[candidates]
    accepted = torch.rand_like(ratio) < ratio
    following = torch.multinomial(residual(target, draft), 1) if (draft > target).any() else candidates
    return torch.where(accepted, candidates, following)


def categorical(target, draft, candidates, rng):
    return torch.distributions.Categorical(probs=target).sample()


def race_in_place(target, draft, candidates, rng):
    row = target[None]
    row.div_(torch.empty_like(row).exponential_(1.0))
    return target.argmax()


def race(target, draft, candidates, rng):
    return (target / torch.empty_like(target).exponential_()).argmax(dim=-1).item()


def gumbel(target, draft, candidates, rng):
    return (target.log() - torch.log(-torch.log(torch.rand_like(target)))).argmax()


def clamped_gumbel(target, draft, candidates, rng):
    noise = torch.zeros_like(target).uniform_(0, 1).clamp(min=1e-20)
    return (target.log() - (-noise.log()).clamp(min=1e-20).log()).argmax(dim=-1)


def top_of_topk(target, draft, candidates, rng):
    keys = target.log() - torch.log(-torch.log(torch.rand_like(target)))
    return torch.topk(keys, 2).indices[0]


def searchsorted(target, draft, candidates, rng):
    coin = torch.rand(1, dtype=target.dtype) * target.sum()
    return torch.searchsorted(target.cumsum(0), coin, right=True)


def counted(target, draft, candidates, rng):
    return (target.cumsum(0) <= torch.rand((), dtype=target.dtype) * target.sum()).sum()


def bernoulli(target, draft, candidates, rng):
    x = candidates[0]
    if torch.bernoulli((target[x] / draft[x]).clamp(max=1)):
        return x
    return torch.multinomial(residual(target, draft), 1)


def through_numpy(target, draft, candidates, rng):
    coin = torch.rand(1, dtype=target.dtype).numpy()
    return int(np.searchsorted(np.cumsum(target.numpy()) / target.sum().item(), coin, side="right")[0])


def views(target, draft, candidates, rng):
    coins = torch.rand(2, 3, dtype=target.dtype)
    coin = coins.t()[1:].flip(0)[0, 1]  # row 2, column 1
    return (target.cumsum(0) <= coin.clone() * target.sum()).sum()


STYLES = [
    item, truth_of_a_tensor, rand_like, categorical, race_in_place, race, gumbel, clamped_gumbel, top_of_topk,
    searchsorted, counted, bernoulli, through_numpy, views,
]  # fmt: skip
