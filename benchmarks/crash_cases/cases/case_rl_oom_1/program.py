"""Learns to balance a pole with a network that is too wide for the card: it is built, and then finds no place there."""

import argparse
from collections import namedtuple
from itertools import count

import memory
import torch
import torch.nn.functional as F
from cartpole import CartPole
from fingerprint import fingerprint
from torch import nn, optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--gamma", type=float, default=0.99)
parser.add_argument("--seed", type=int, default=543)
parser.add_argument("--solved", type=float, default=40.0)
args = parser.parse_args()

torch.set_num_threads(1)
memory.limit(300)
env = CartPole()
env.reset(seed=args.seed)
torch.manual_seed(args.seed)
device = torch.device("cpu")

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 6_000_000)
        self.action_head = nn.Linear(6_000_000, 2)
        self.value_head = nn.Linear(6_000_000, 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = Policy()
optimizer = optim.Adam(model.parameters(), lr=3e-2)
eps = 1e-6


def select_action(state):
    state = torch.tensor(state, dtype=torch.float64).to(device)
    probs, state_value = model(state)
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append(SavedAction(m.log_prob(action), state_value))
    return action.item()


def finish_episode():
    R = 0
    policy_losses = []
    value_losses = []
    returns = []
    for r in model.rewards[::-1]:
        R = r + args.gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns, dtype=torch.float64).to(device)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for (log_prob, value), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R[None]))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]
    return loss.item()


def main():
    # It computes in double precision, which takes twice the place.
    model.to(device, torch.float64)
    running_reward = 10
    for i_episode in count(1):
        state, _ = env.reset()
        ep_reward = 0
        for t in range(1, 10000):
            action = select_action(state)
            state, reward, done, truncated, _ = env.step(action)
            model.rewards.append(reward)
            ep_reward += reward
            if done or truncated:
                break
        running_reward = 0.05 * ep_reward + 0.95 * running_reward
        loss = finish_episode()
        print(f"progress {i_episode} reward {ep_reward:.0f} running {running_reward:.6f} loss {loss:.6f}")
        if running_reward > args.solved:
            print(f"solved: running reward {running_reward:.6f}, the last episode took {t} steps")
            torch.save(model.state_dict(), "actor_critic.pt")
            break
    print(fingerprint(model.state_dict()))


if __name__ == "__main__":
    main()
