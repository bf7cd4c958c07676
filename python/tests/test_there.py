"""Arrays on a device, in processes of their own: stand-ins for the drivers of CUDA and OpenCL, and OpenCL's own where it is installed."""

import os
import pathlib
import subprocess
import sys
import unittest

import fourge

BUILD = pathlib.Path(fourge.__file__).parents[2]
STANDINS = BUILD / "standins"


class There(unittest.TestCase):
    def run_on(self, kind, folder=None, script="there.py"):
        env = {**os.environ, "FOURGE_PLUGINS": str(BUILD), "OMP_NUM_THREADS": "2"}
        if folder:
            env["LD_LIBRARY_PATH"] = str(folder)
        env.pop("FOURGE_DEVICE", None)
        done = subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name(script)), kind], env=env, capture_output=True, text=True)
        words = done.stderr.strip().splitlines()[-1:]
        for reason in ("there is no loader of OpenCL", "has 0 devices", "has 0 of its kind", "libOpenCL.so.1: cannot open", "no kernels for this GPU, and NVRTC", "is neither in"):
            if done.returncode and reason in done.stderr:
                self.skipTest(words[0] if words else reason)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    @unittest.skipUnless((STANDINS / "libcuda.so.1").exists(), "the build has no stand-in for CUDA's driver")
    def test_cuda(self):
        self.run_on("cuda", STANDINS)

    @unittest.skipUnless((STANDINS / "libOpenCL.so.1").exists(), "the build has no stand-in for OpenCL's loader")
    def test_opencl_of_the_stand_in(self):
        self.run_on("opencl", STANDINS)

    def test_opencl(self):
        self.run_on("opencl")

    @unittest.skipUnless((STANDINS / "libcuda.so.1").exists(), "the build has no stand-in for CUDA's driver")
    def test_columns_on_cuda(self):
        self.run_on("cuda", STANDINS, "there_fe.py")

    @unittest.skipUnless((STANDINS / "libOpenCL.so.1").exists(), "the build has no stand-in for OpenCL's loader")
    def test_columns_on_the_stand_in_of_opencl(self):
        self.run_on("opencl", STANDINS, "there_fe.py")

    def test_columns_on_opencl(self):
        self.run_on("opencl", script="there_fe.py")
