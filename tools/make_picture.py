"""Draws python/co2.svg, the picture of the package's page, from the fit that stands there.

    PYTHONPATH=build/python PEERS/bin/python tools/make_picture.py
"""

import pathlib

import matplotlib
import numpy as np

matplotlib.use("svg")
matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "fourge", "font.size": 10}
from matplotlib import pyplot  # noqa: E402

from fourge import datasets, gp  # noqa: E402

data = datasets.load("co2")
time, co2 = data["time"], data["co2"]
seen = (time < 1992) & np.isfinite(co2)
KERNEL = "scale*rbf(l=60) + scale*rbf(l=90)*periodic(p=1!) + scale*rq(l=1) + noise"
model = gp.GP(time[seen], co2[seen], KERNEL)
model.fit()
ahead = time >= 1992
mean, std = model.predict(time[ahead], observed=True, return_std=True)

figure, axis = pyplot.subplots(figsize=(7.2, 2.8), layout="constrained")
shown = seen & (time >= 1980)
dots = {"marker": ".", "ls": "", "ms": 2.5}
axis.plot(time[shown], co2[shown], color="#555555", **dots, label="measured until 1992 (shown from 1980)")
band = {"color": "#2a7ab0", "alpha": 0.25, "lw": 0, "label": "forecast, two standard deviations"}
axis.fill_between(time[ahead], mean - 2 * std, mean + 2 * std, **band)
axis.plot(time[ahead], mean, color="#2a7ab0", lw=1)
axis.plot(time[ahead], co2[ahead], color="#d1495b", **dots, label="measured later")
axis.set(ylabel="CO2 at Mauna Loa, ppm", xlim=(1980, 2002.2))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left")
target = pathlib.Path(__file__).resolve().parents[1] / "python" / "co2.svg"
figure.savefig(target, metadata={"Date": None}, facecolor="white")
text = target.read_text(encoding="utf-8")
target.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
