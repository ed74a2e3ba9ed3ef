"""What tests of several networks share."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap


@pytest.fixture
def same_stacked():
    """Checks that members stacked into one program answer, learn and keep buffers as each by itself."""

    def same_stacked(spec, shape, rows=5, passes=1):
        members = [spec.build(shape, 2).double() for _ in range(3)]
        parameters, buffers = stack_module_state(members)
        skeleton = spec.build(shape, 2).double()
        for _ in range(passes):
            x = torch.randn(rows, *shape, dtype=torch.float64)
            run = vmap(lambda p, b, x: functional_call(skeleton, (p, b), (x,)), in_dims=(0, 0, None))
            together, apart = run(parameters, buffers, x), torch.stack([member(x) for member in members])
            torch.testing.assert_close(together, apart)
            together.square().sum().backward()
            apart.square().sum().backward()
        for index, member in enumerate(members):
            for name, parameter in member.named_parameters():
                torch.testing.assert_close(parameters[name].grad[index], parameter.grad)
            for name, buffer in member.named_buffers():
                torch.testing.assert_close(buffers[name][index], buffer)

    return same_stacked
