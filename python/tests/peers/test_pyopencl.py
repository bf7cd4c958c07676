"""pyopencl's own arrays, on whatever OpenCL device is there: columns and costs in place, results of theirs."""

import unittest

import numpy as np

from fourge import errors, fe, gw

try:
    import pyopencl as cl
    import pyopencl.array as arrays

    context = cl.create_some_context(interactive=False)
except Exception as e:  # pyopencl is not installed, or finds no device: what it raises is its own
    raise unittest.SkipTest(f"no array of pyopencl: {e}") from None


class PyOpenCL(unittest.TestCase):
    def setUp(self):
        self.queue, rng = cl.CommandQueue(context), np.random.default_rng(3)
        self.x, self.weights = rng.random((500, 64)), rng.random(500) + 0.1
        self.codes = rng.integers(0, 20, (500, 2))
        try:
            self.want = fe.demean(self.x, self.codes, self.weights, device="opencl")[0]
        except errors.NoDevice as e:
            self.skipTest(str(e))

    def sent(self, a, queue=None):
        return arrays.to_device(queue or self.queue, a)

    def test_columns(self):
        x, weights = self.sent(self.x), self.sent(self.weights)
        beside, report = fe.demean(x, self.codes, weights)
        self.assertIsInstance(beside, arrays.Array)
        self.assertEqual((beside.get().tobytes(), x.get().tobytes()), (self.want.tobytes(), self.x.tobytes()))
        self.assertEqual(report["passes_on"], "opencl:0")
        out = self.sent(np.zeros_like(self.x), cl.CommandQueue(context))
        self.assertIs(fe.demean(x, self.codes, weights, out=out)[0], out)
        self.assertTrue(np.array_equal(out.get(), self.want))
        part = x[:, 32:40]
        fe.demean(part, self.codes, weights, out=part)
        got, alone = x.get(), fe.demean(self.x[:, 32:40], self.codes, self.weights, device="opencl")[0]  # bits depend on how many there are
        self.assertTrue(np.array_equal(got[:, 32:40], alone) and np.array_equal(got[:, :32], self.x[:, :32]))
        column = self.sent(self.x[:, 0].astype(np.float32))
        self.assertEqual(fe.demean(column, self.codes)[0].dtype, np.float32)

    def test_costs(self):
        cost = self.x[:40]
        want, found = gw.transport(cost, epsilon=0.1, device="opencl"), gw.transport(self.sent(cost), epsilon=0.1)
        self.assertIsInstance(found.potentials[0], arrays.Array)
        self.assertTrue(np.array_equal(found.potentials[0].get(), want.potentials[0]))
        self.assertTrue(np.allclose(found.plan().get(), want.plan(), rtol=1e-13, atol=0))
