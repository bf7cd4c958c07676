#!/usr/bin/env python3
"""Opens the pages that fourge writes in a browser: browser_pages.py PROGRAM [--keep FOLDER]; prints TAP.

Debian's chromium runs without a window and answers on a pipe (its DevTools protocol), so that nothing but Python's standard
library is needed.  Every page is laid out 400 and 1400 pixels wide, in the light and in the dark scheme, and must

- leave no message in the console: none of a script, none of the content policy, none of a file that was not found;
- show everything: no text beyond the page, none in a box that hides it, none outside of its picture or over another text in
  it; a wide table or picture may scroll inside a box that the keyboard reaches and that has a name;
- be readable: the contrast of each text is at least 4.5 against its background, that of lines in pictures 3 (WCAG 2.1);
- say in words what its pictures show: each has a name and a description in the browser's own tree for screen readers.

Planted faults come first: each must be found.  --keep leaves the pages and a picture of each in FOLDER.
"""
import array
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
WIDTHS = (400, 1400)
SCHEMES = ("light", "dark")
ANSWER_S = 60  # a browser that has not answered by then hangs

# Name of the page and the command that writes it, {p} the page and {d} a folder of results; one of each kind of page.
PAGES = (
    ("tour", "tour --report {p}"),
    ("fe", "fe 'lwage ~ expersq + union + married | nr + occupation^year' data/wage_panel.csv --vcov cluster=nr --report {p}"),
    ("fe-terms", "fe 'lwage ~ i(year, ref=1980) + union | nr' data/wage_panel.csv --report {p}"),
    ("demean", "demean --columns {d}/x.npy --codes {d}/codes.npy --out {d}/r.npy --report {p}"),
    ("gp-fit", "gp fit data/diabetes.csv --y target --x bmi,bp --kernel 'scale*rbf(ard) + noise' --save {d}/m --report {p}"),
    ("gp-value", "gp value data/diabetes.csv --y target --x bmi --kernel 'scale*rbf + noise' --report {p}"),
    ("gp-loo", "gp loo {d}/m --report {p}"),
    ("gp-predict", "gp predict {d}/m data/diabetes.csv --report {p}"),
    ("gp-sample", "gp sample {d}/m data/diabetes.csv --samples 3 --report {p}"),
    ("gp-batch", "gp batch {d}/list --y y --x x --kernel 'rbf + noise' --report {p}"),
    ("gw-align", "gw align {d}/a.csv {d}/b.csv --report {p}"),
    ("gw-sampled", "gw align {d}/a.csv {d}/b.csv --mode sampled --k 5 --max-iter 30 --embedding {d}/e.npy --report {p}"),
    ("gw-sinkhorn", "gw sinkhorn {d}/cost.npy --epsilon 0.5 --report {p}"),
    ("gw-paths", "gw paths {d}/a.csv --k 5 --out {d}/paths.npy --report {p}"),
    ("gw-energy", "gw energy {d}/cost.npy {d}/cost.npy {d}/plan.npy --distance matrix --report {p}"),
    ("gw-barycenter", "gw barycenter {d}/cost.npy {d}/cost.npy --distance matrix --points 9 --out {d}/mean.npy --report {p}"),
    ("soap-train", "soap train digits --steps 20 --report {p}"),
    ("soap-qr", "soap qr {d}/cost.npy --q {d}/q.npy --r {d}/r2.npy --report {p}"),
    ("soap-bench", "soap bench --layers 1 --hidden 8 --mlp 16 --steps 2 --warmup 0 --report {p}"),
    ("doctor", "doctor --report {p}"),
)

# What the page says of itself at the width and in the scheme that it has: a list of faults.
LOOK = r"""(() => {
  const faults = [], root = document.scrollingElement, wide = root.clientWidth;
  const words = e => (e.id ? '#' + e.id : e.tagName.toLowerCase()) + ' "' +
    e.textContent.trim().replace(/\s+/g, ' ').slice(0, 60) + '"';
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  const lost = e => e.closest('head, title, desc, style, script');
  if (root.scrollWidth > wide) faults.push(`the page is ${root.scrollWidth} px wide, ${root.scrollWidth - wide} too many`);
  const scrolls = e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  for (const e of document.querySelectorAll('body *')) {
    if (lost(e) || e.closest('svg') !== null && e.tagName !== 'svg') continue;
    const inside = e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0, style = getComputedStyle(e);
    if (inside && ['hidden', 'clip'].includes(style.overflowX)) faults.push(`cut off: ${words(e)}`);
    if (inside && scrolls(e) && !(e.tabIndex === 0 && (e.ariaLabel || e.getAttribute('aria-labelledby'))))
      faults.push(`scrolls out of the keyboard's reach: ${words(e)}`);
    let box = e.parentElement;
    while (box && !scrolls(box)) box = box.parentElement;
    const r = e.getBoundingClientRect();
    if (!box && r.width > 0 && (r.right > wide + 1 || r.left < -1)) faults.push(`beyond the page: ${words(e)}`);
  }
  for (const svg of document.querySelectorAll('svg')) {
    const r = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].filter(t => getComputedStyle(t).display !== 'none')
      .map(t => [t, t.getBoundingClientRect()]);
    texts.forEach(([t, b], i) => {
      if (b.left < r.left - 1 || b.right > r.right + 1 || b.top < r.top - 1 || b.bottom > r.bottom + 1)
        faults.push(`outside of its picture: ${words(t)}`);
      for (const [u, c] of texts.slice(i + 1))
        if (Math.min(b.right, c.right) - Math.max(b.left, c.left) > 1 &&
            Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top) > 3) faults.push(`one over the other: ${words(t)}, ${words(u)}`);
    });
  }
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return {y: 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b), a};
  };
  const behind = e => {
    for (; e; e = e.parentElement) { const c = light(getComputedStyle(e).backgroundColor); if (c.a === 255) return c.y; }
    return light('white').y;
  };
  const least = (e, colour, limit) => {
    const y = light(colour).y, z = behind(e), c = (Math.max(y, z) + 0.05) / (Math.min(y, z) + 0.05);
    if (c < limit) faults.push(`contrast ${c.toFixed(2)}, below ${limit}: ${e.getAttribute('class') || ''} ${words(e)}`);
  };
  for (const e of document.querySelectorAll('body *'))
    if (own(e) && !lost(e)) least(e, getComputedStyle(e)[e.closest('svg') ? 'fill' : 'color'], 4.5);
  for (const e of document.querySelectorAll('svg .line, svg .mark, svg .whisker')) least(e, getComputedStyle(e).stroke, 3);
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach(id => faults.push(`two elements have the id ${id}`));
  return {faults: [...new Set(faults)], pictures: document.querySelectorAll('svg, img, canvas').length,
          high: Math.ceil(root.scrollHeight), dark: behind(document.body) < 0.2};
})()"""


class Browser:
    """Chromium on a pipe: messages are JSON with a zero byte behind each."""

    def __init__(self, folder):
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        program = shutil.which("chromium")
        if not program:
            sys.exit("chromium is not installed; test.sh --full installs it")

        def as_3_and_4():  # the descriptors that --remote-debugging-pipe reads and writes
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
             f"--user-data-dir={folder}/profile", "about:blank"],
            preexec_fn=as_3_and_4, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=str(folder)))
        os.close(to_browser)
        os.close(from_browser)
        os.set_blocking(self.into, False)
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(domain + ".enable")

    def read(self, until):
        """The next message; what is no answer is kept as an event."""
        while b"\0" not in self.rest:
            if time.monotonic() > until or self.process.poll() is not None:
                raise TimeoutError("the browser does not answer")
            try:
                self.rest += os.read(self.into, 1 << 20)
            except BlockingIOError:
                time.sleep(0.002)
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        until = time.monotonic() + ANSWER_S
        while True:
            message = self.read(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, page, width, scheme):
        """Lays the page out; the messages of its console."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        until = time.monotonic() + ANSWER_S
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.read(until)
        self.call("Runtime.evaluate", expression="0")  # messages that are under way come before its answer
        return [said for said in map(message_of, self.events) if said]

    def look(self):
        answer = self.call("Runtime.evaluate", expression=LOOK, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:400])
        return answer["result"]["value"]

    def pictures(self):
        """(name, description) of each picture as a screen reader gets them."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        value = lambda node, what: node.get(what, {}).get("value", "")
        return [(value(n, "name"), value(n, "description")) for n in nodes
                if not n.get("ignored") and value(n, "role") in ("image", "img", "graphics-document")]

    def picture(self, width, height, path):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
        except (TimeoutError, OSError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def message_of(event):
    """What an event says in the console, or that a file was not had; None: nothing."""
    p, method = event["params"], event["method"]
    if method == "Runtime.consoleAPICalled":
        return f"console.{p['type']}: " + " ".join(str(a.get("value", a.get("description", ""))) for a in p["args"])
    if method == "Runtime.exceptionThrown":
        return "exception: " + p["exceptionDetails"].get("exception", {}).get("description", p["exceptionDetails"]["text"])
    if method == "Log.entryAdded":
        return f"{p['entry']['level']}: {p['entry']['text']}"
    if method == "Network.requestWillBeSent" and p["request"]["url"] != p["documentURL"]:
        return "fetches " + p["request"]["url"][:100]
    return None


def faults_of(browser, page, width, scheme, keep=None):
    faults = browser.open(page, width, scheme)
    seen = browser.look()
    faults += seen["faults"]
    if seen["dark"] != (scheme == "dark"):
        faults.append(f"the background is not that of the {scheme} scheme")
    named = [name for name, text in browser.pictures() if name.strip() and text.strip()]
    if len(named) != seen["pictures"]:
        faults.append(f"{seen['pictures']} pictures, of which {len(named)} have a name and a description")
    if keep:
        browser.picture(width, min(seen["high"], 16000), keep / f"{page.stem}-{width}-{scheme}.png")
    return faults


# ---- pages ----------------------------------------------------------------------------------------------

def inputs(folder):
    """What some of the commands read: two small clouds, a list of them, arrays."""
    for name, turn in (("a", 1), ("b", -1)):
        rows = [f"{i % 7 + 0.1 * (i % 5)},{turn * (i // 7) + 0.05 * (i * i % 11)}" for i in range(49)]
        (folder / f"{name}.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    (folder / "list").write_text(f"{folder}/a.csv\n{folder}/b.csv\n")
    save_array(folder / "x.npy", "d", [(i * i % 23 + j, i % 7)[j] for i in range(60) for j in range(2)], (60, 2))
    save_array(folder / "codes.npy", "i", [(i % 5, i // 5 % 4)[j] for i in range(60) for j in range(2)], (60, 2))
    save_array(folder / "cost.npy", "d", [abs(i - j) for i in range(12) for j in range(12)], (12, 12))
    save_array(folder / "plan.npy", "d", [(i == j) / 12 for i in range(12) for j in range(12)], (12, 12))


def save_array(path, kind, values, shape):
    """An npy file, version 1."""
    head = str({"descr": {"d": "<f8", "i": "<i4"}[kind], "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head.encode() + array.array(kind, values).tobytes())


def write_pages(program, folder):
    """[(name, path, what went wrong)]"""
    inputs(folder)
    pages = [("golden", ROOT / "tests" / "golden" / "report.html", "")]
    for name, command in PAGES:
        page = folder / f"{name}.html"
        line = f"'{program}' {command.format(p=page, d=folder)}"
        done = subprocess.run(["sh", "-c", line], cwd=ROOT, env=dict(os.environ, FOURGE_DATA=str(DATA)), timeout=120,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        pages.append((name, page, "" if page.exists() else f"{line}: {done.stderr.strip()}"))
    return pages


PLANTED = {
    "an overflow": ("<p style='width:1600px'>wide</p>", "the page is"),
    "a hidden overflow": ("<p style='width:9em;overflow:hidden;white-space:nowrap'>a text that is longer than that</p>", "cut off"),
    "a box without a key": ("<div style='overflow-x:auto'><p style='width:1600px'>wide</p></div>", "keyboard"),
    "a console error": ("<script>console.error('planted')</script>", "console.error: planted"),
    "an exception": ("<script>planted()</script>", "planted is not defined"),
    "a file not there": ("<img alt='a' src='planted.png'>", "planted.png"),
    "pale text": ("<p style='color:#999;background:#bbb'>pale</p>", "contrast"),
    "a picture without words": ("<svg viewBox='0 0 9 9'><path d='M0 0L9 9'/></svg>", "pictures, of which"),
    "text outside": ("<svg viewBox='0 0 90 30' width='90'><text x='60' y='20'>outside</text></svg>", "outside of its picture"),
    "texts over each other": ("<svg viewBox='0 0 90 30' width='90'><text x='9' y='20'>one</text><text x='12' y='21'>two</text></svg>",
                              "one over the other"),
    "one id twice": ("<p id='a'>a</p><p id='a'>b</p>", "id a"),
    "a scheme that does not change": ("<style>body{background:#fff;color:#000}</style>", "dark scheme"),
}

# The same in a copy of a page, whose content policy does not let a script run.
PLANTED_IN_PAGE = {
    "an overflow in a page": ("<p style='width:1600px'>wide</p>", "the page is"),
    "a script in a page": ("<script>console.error('planted')</script>", "Content Security Policy"),
}


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    keep = pathlib.Path(sys.argv[sys.argv.index("--keep") + 1]).resolve() if "--keep" in sys.argv else None
    count = failed = 0

    def tell(label, faults):
        nonlocal count, failed
        count += 1
        failed += bool(faults)
        print(f"{'not ok' if faults else 'ok'} {count} - {label}", flush=True)
        for fault in faults[:12]:
            print(f"#   {fault}")

    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
        browser = Browser(folder)
        golden = (ROOT / "tests" / "golden" / "report.html").read_text()
        start = ("<!DOCTYPE html><html lang='en'><meta charset='utf-8'><style>body{background:#fff;color:#000}@media "
                 "(prefers-color-scheme:dark){body{background:#000;color:#fff}}</style><body>")
        page = folder / "planted.html"
        page.write_text(start + "<p>Nothing is wrong here.</p>")
        tell("nothing planted, nothing found", [f for s in SCHEMES for f in faults_of(browser, page, 400, s)])
        for name, (text, wanted) in (PLANTED | PLANTED_IN_PAGE).items():
            page.write_text(golden.replace("</main>", text + "</main>") if name in PLANTED_IN_PAGE else start + text)
            found = faults_of(browser, page, 400, "dark")
            tell(f"{name} is found", [] if any(wanted in f for f in found) else [f"'{wanted}' is not in {found}"])
        for name, page, wrong in write_pages(program, keep or folder):
            for width in WIDTHS:
                for scheme in SCHEMES:
                    tell(f"{name}, {width} px, {scheme}", [wrong] if wrong else faults_of(browser, page, width, scheme, keep))
        browser.close()
    print(f"1..{count}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
