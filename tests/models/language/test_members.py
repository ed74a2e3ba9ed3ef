import torch

from likely.models.language.members import Mixing


def test_told_step_by_step_members_are_averaged_as_whole_sequences():
    torch.manual_seed(0)
    weights, log_probs = torch.tensor([0.2, 0.5, 0.3]), torch.randn(4, 3, 5, 6).log_softmax(-1)  # steps, members, rows
    tokens = torch.randint(6, (4, 5))
    mixing, total = Mixing.begun(weights, 5), torch.zeros(5, dtype=torch.float64)
    for t in range(4):
        mixed, mixing = mixing.after(tokens[t - 1], list(log_probs[t]))
        total += mixed.gather(1, tokens[t].unsqueeze(1)).squeeze(1)
    index = tokens[:, None, :, None].expand(4, 3, 5, 1)
    alone = log_probs.double().gather(3, index).squeeze(3).sum(0)  # (members, rows)
    torch.testing.assert_close(total, torch.logsumexp(alone + weights.double().log()[:, None], 0))
