# SPDX-License-Identifier: MIT
#
# browser.py: Chromium without a screen, over the pipe of its DevTools protocol, and what the tests of pages share.

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if not CHROMIUM:
    print("1..0 # SKIP no chromium")
    sys.exit()
if not os.path.exists("build/moongrid"):
    sys.exit("build/moongrid is not built")


class Browser:
    def __init__(self, folder):
        here, there = os.pipe(), os.pipe()  # to the browser, from it

        def pipes():
            low = os.dup(here[0]), os.dup(there[1])
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
             "--disable-dev-shm-usage", "--user-data-dir=" + folder, "about:blank"],
            preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.to, self.of, self.rest, self.last, self.events = here[1], there[0], b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.of, 1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.rest += piece
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.last += 1
        order = {"id": self.last, "method": method, "params": params}
        if getattr(self, "session", None):
            order["sessionId"] = self.session
        text = json.dumps(order).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        while True:
            m = self.message()
            if m.get("id") == self.last:
                if "error" in m:
                    raise RuntimeError(method + ": " + m["error"]["message"])
                return m["result"]
            self.events.append(m)

    def value(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(expression + ": " + json.dumps(r["exceptionDetails"])[:400])
        return r["result"].get("value")

    def open(self, path):
        self.events.clear()
        path, _, place = path.partition("#")
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + ("#" + place if place else ""))
        for _ in range(600):
            if self.value("location.protocol == 'file:' && document.readyState") == "complete":
                return
            time.sleep(0.05)
        raise RuntimeError("the page is not there after 30 seconds")

    def troubles(self):
        bad = [e for e in self.events if e.get("method") == "Runtime.exceptionThrown"
               or e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
        return [json.dumps(e)[:300] for e in bad]

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    # The pointer hits what the browser has drawn, so wait until it has.
    def place(self, selector):
        return self.value("(async () => { const e = document.querySelector(%s); e.scrollIntoView({ block: 'center' });"
                          " await new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)));"
                          " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()"
                          % json.dumps(selector))

    def move(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.place(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key, text=""):
        code = {"Enter": 13, "ArrowRight": 39, "ArrowDown": 40, "ArrowLeft": 37, "Escape": 27, "Home": 36, " ": 32}
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code.get(key, 0), **more)

    def size(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="webp", quality=60)["data"]))

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def moongrid(*args):
    r = subprocess.run(["build/moongrid", *args], capture_output=True, text=True)
    if r.returncode:
        raise RuntimeError(r.stderr)
    return r.stdout


TEXTS = "[...document.querySelectorAll(%s)].map(e => e.textContent)"


def texts(b, selector):
    return b.value(TEXTS % json.dumps(selector))


def same(what, got, want):
    assert got == want, "%s: %s, not %s" % (what, repr(got)[:900], repr(want)[:900])


# Texts that are cut without an ellipsis, or broken within a word.
CUT = """[...document.querySelectorAll('h1, strong, #families label, .label, td, th, .said')].filter(e => {
  const style = getComputedStyle(e);
  return e.offsetParent && e.scrollWidth > e.clientWidth + 1 && style.display !== 'inline'
    && !(style.textOverflow === 'ellipsis' && style.overflowX === 'hidden')
    && ![...e.children].some(c => getComputedStyle(c).textOverflow === 'ellipsis');
}).map(e => e.textContent)"""


# Run tests (browser, folder, shots) and print TAP; return the exit code.
def run_tests(tests):
    shots = sys.argv[1] if len(sys.argv) > 1 else None
    print("1..%d" % len(tests))
    bad = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        b = Browser(folder + "/profile")
        try:
            for i, test in enumerate(tests, 1):
                try:
                    test(b, folder, shots)
                    same("troubles", b.troubles(), [])
                    print("ok %d %s" % (i, test.__name__[5:]))
                except (AssertionError, RuntimeError) as e:
                    bad += 1
                    print("not ok %d %s\n# %s" % (i, test.__name__[5:], str(e).replace("\n", "\n# ")))
        finally:
            b.close()
    return 1 if bad else 0

