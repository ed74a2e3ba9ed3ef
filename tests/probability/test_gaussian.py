import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal

from likely.core.errors import DataError
from likely.probability import condition, marginal


@pytest.fixture
def joint():
    generator = torch.Generator().manual_seed(3)
    factor = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    return MultivariateNormal(
        torch.randn(4, dtype=torch.float64, generator=generator), factor @ factor.T + torch.eye(4)
    )


@pytest.mark.parametrize("index", [[0], [3, 1], [0, 1, 2], [-1]])
def test_both_forms_agree_with_the_equations(joint, index):
    known = [i % 4 for i in index]
    unknown = [i for i in range(4) if i not in known]
    values = torch.linspace(-1, 1, len(index), dtype=torch.float64)
    sigma, mu = joint.covariance_matrix, joint.loc
    gain = sigma[unknown][:, known] @ torch.linalg.inv(sigma[known][:, known])
    mean = mu[unknown] + gain @ (values - mu[known])
    covariance = sigma[unknown][:, unknown] - gain @ sigma[known][:, unknown]
    for form in ("covariance", "precision"):
        answer = condition(joint, index, values, form=form)
        torch.testing.assert_close(answer.mean, mean)
        torch.testing.assert_close(answer.covariance_matrix, covariance)
    torch.testing.assert_close(
        condition(joint, index, values).precision_matrix, joint.precision_matrix[unknown][:, unknown]
    )


def test_joint_is_marginal_times_conditional(joint):
    points = torch.randn(10, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    known, unknown = [1, 2], [0, 3]
    parts = marginal(joint, known).log_prob(points[:, known])
    parts = parts + condition(joint, known, points[:, known]).log_prob(points[:, unknown])
    torch.testing.assert_close(joint.log_prob(points), parts)


def test_conditional_is_that_of_draws(seed):
    """Draws that fall in a thin slab around the observed value; five z-scores within 5: a false alarm in 3 of 10⁶
    seeds.
    """
    covariance = torch.tensor([[2.0, 0.8, 0.3], [0.8, 1.0, 0.2], [0.3, 0.2, 1.5]])
    joint = MultivariateNormal(torch.tensor([1.0, 0.0, -1.0]), covariance)
    torch.manual_seed(seed)
    draws = joint.sample((2_000_000,)).numpy()
    near = draws[np.abs(draws[:, 1] - 0.7) < 0.005][:, [0, 2]]
    answer = condition(joint, 1, 0.7)
    error = near.std(0, ddof=1) / np.sqrt(len(near))
    assert (np.abs(near.mean(0) - answer.mean.numpy()) < 5 * error + 0.005).all()
    sample = np.cov(near.T)
    expected = answer.covariance_matrix.numpy()
    spread = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / len(near))
    assert (np.abs(sample - expected) < 5 * spread + 1e-4).all()


def test_marginal_takes_the_order_asked_for(joint):
    part = marginal(joint, [3, 0])
    torch.testing.assert_close(part.mean, joint.mean[[3, 0]])
    torch.testing.assert_close(part.covariance_matrix, joint.covariance_matrix[[3, 0]][:, [3, 0]])


def test_marginal_of_a_precision_is_its_schur_complement(joint):
    precision, kept, gone = joint.precision_matrix, [0, 2], [1, 3]
    schur = (
        precision[kept][:, kept]
        - precision[kept][:, gone] @ torch.linalg.inv(precision[gone][:, gone]) @ precision[gone][:, kept]
    )
    torch.testing.assert_close(marginal(joint, kept).precision_matrix, schur)


def test_leading_axes_of_values_are_a_batch(joint):
    values = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for form in ("covariance", "precision"):
        answer = condition(joint, [0, 1], values, form=form)
        assert answer.batch_shape == (5,)
        torch.testing.assert_close(answer.mean[2], condition(joint, [0, 1], values[2]).mean)


def test_errors_name_the_argument(joint):
    with pytest.raises(DataError, match=r"index must name different coordinates from 0 to 3; found \[0, 0\]"):
        marginal(joint, [0, 0])
    with pytest.raises(DataError, match="index names all 4 coordinates"):
        condition(joint, [0, 1, 2, 3], torch.zeros(4))
    with pytest.raises(DataError, match=r"values must end in one number for each of the 2 .* found shape \(3,\)"):
        condition(joint, [0, 1], torch.zeros(3))
    with pytest.raises(DataError, match='form must be "covariance" or "precision"; found \'lu\''):
        condition(joint, 0, 1.0, form="lu")
