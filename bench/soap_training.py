"""AdamW beside SOAP in training: soap_training.py BUILD text|digits [STEPS [RATES [SEEDS]]]

Each optimizer trains at every learning rate from every seed. The loss to reach is AdamW's at its best rate after all
steps (running mean of 20, mean over the seeds); a line says how many steps and seconds each optimizer needs for it at
its best rate, seed by seed (null: not within the steps). RATES are separated by commas, SEEDS is their number.
text: BUILD/char_transformer, compiled from examples (SOAP refreshes every 5 steps). digits: fourge soap train digits;
SOAP refreshes every step, with denom_floor 16, which keeps rounding noise out of the first one; AdamW has its own beta2
of 0.999, and in a second comparison SOAP's 0.95.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

build, task = sys.argv[1:3]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 240
rates = [float(r) for r in (sys.argv[4] if len(sys.argv) > 4 else "1e-3,2e-3,4e-3,8e-3,16e-3").split(",")]
seeds = range(1, 1 + (int(sys.argv[5]) if len(sys.argv) > 5 else 3))
root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEXT = ("adamw", "soap")
DIGITS = {"adamw": ["--optimizer", "adamw"], "adamw, beta2 0.95": ["--optimizer", "adamw", "--beta2", "0.95"],
          "soap": ["--frequency", "1", "--denom-floor", "16"]}
OPTIMIZERS = list({"text": TEXT, "digits": DIGITS}[task])


def text(rate, seed):
    """{optimizer: (losses, seconds by step)}"""
    with tempfile.TemporaryDirectory() as folder:
        curves = os.path.join(folder, "curves")
        subprocess.run([os.path.join(build, "char_transformer"), str(steps),
                        os.path.join(root, "data", "shakespeare.txt"), str(rate), str(seed), curves],
                       check=True, stdout=subprocess.DEVNULL)
        with open(curves) as lines:
            rows = [[float(x) for x in line.split()] for line in lines]
    return {o: ([r[1 + k] for r in rows], [r[3 + k] for r in rows]) for k, o in enumerate(TEXT)}


def digits(rate, seed):
    out = {}
    for optimizer, options in DIGITS.items():
        run = subprocess.run([os.path.join(build, "fourge"), "soap", "train", "digits", *options, "--lr", str(rate),
                              "--seed", str(seed), "--steps", str(steps), "--format", "json"],
                             check=True, capture_output=True, cwd=root)
        result = json.loads(run.stdout)
        total = result["seconds"]["total"]
        out[optimizer] = (result["loss_trace"], [total * (i + 1) / steps for i in range(steps)])
    return out


def smoothed(losses):
    return [statistics.mean(losses[max(0, i - 19):i + 1]) for i in range(len(losses))]


runs = {}
for rate in rates:
    for seed in seeds:
        for optimizer, (losses, seconds) in {"text": text, "digits": digits}[task](rate, seed).items():
            runs[optimizer, rate, seed] = smoothed(losses), seconds
        print(rate, seed, *(f"{runs[o, rate, seed][0][-1]:.4g}" for o in OPTIMIZERS), file=sys.stderr, flush=True)


def last(optimizer, rate):
    return statistics.mean(runs[optimizer, rate, s][0][-1] for s in seeds)


def reached(optimizer, rate, seed, loss):
    """(step, seconds) at which the loss is there; None."""
    losses, seconds = runs[optimizer, rate, seed]
    step = next((i for i in range(19, steps) if losses[i] <= loss), None)
    return None if step is None else (step + 1, round(seconds[step], 2))


def report(optimizer, target, peer):
    """The line of an optimizer at the rate that reaches the target first: a run that never does counts all steps and one."""
    def need(rate):
        return statistics.mean((reached(optimizer, rate, s, target) or (steps + 1, 0))[0] for s in seeds)
    best = min(rates, key=need)
    found = [reached(optimizer, best, s, target) for s in seeds]
    print(json.dumps({"bench": "soap_training", "task": task, "steps": steps, "optimizer": optimizer, "target_of": peer,
                      "target_loss": float(f"{target:.4g}"), "rate": best, "seeds": len(seeds),
                      "last_losses": {str(r): float(f"{last(optimizer, r):.4g}") for r in rates},
                      "steps_to_target": [f and f[0] for f in found], "mean_steps": round(need(best), 1),
                      "seconds_to_target": [f and f[1] for f in found]}), flush=True)


for peer in OPTIMIZERS[:-1]:
    for optimizer in (peer, "soap"):
        report(optimizer, min(last(peer, r) for r in rates), peer)
