# SPDX-License-Identifier: Apache-2.0
"""Drives Chromium by the DevTools protocol, over a pair of pipes: pages at a size and in a theme, a mouse, fingers, keys.

scripts/setup.sh browser installs Chromium.
"""

import base64
import json
import os
import shutil
import subprocess
import time

SECONDS = 60  # for an answer


def find_browser():
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A Chromium with one page. What the page says on its console, and what is thrown in it, is in `said`."""

    def __init__(self, folder):
        ours, theirs = os.pipe(), os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{ours[0]} 4>&{theirs[1]}', "sh", find_browser(), *self._words(folder)],
            pass_fds=(ours[0], theirs[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(folder)},
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._in, self._out = ours[1], theirs[0]
        self._number, self._rest, self._session, self.said = 0, b"", None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _words(folder):
        words = ["--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        # It takes root for a mistake, unless it is told so.
        words += ["--no-sandbox"] if os.getuid() == 0 else []
        return [*words, "--hide-scrollbars", f"--user-data-dir={folder}/profile", "--remote-debugging-pipe"]

    def close(self):
        os.close(self._in)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        return self._answer(self._number)

    def _answer(self, number):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            message = self._message()
            self._note(message)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]
        raise TimeoutError

    def _message(self):
        while b"\0" not in self._rest:
            data = os.read(self._out, 1 << 16)
            if not data:
                raise EOFError("the browser has ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def _note(self, message):
        if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(message["params"]))

    def look(self, page, width=1400, height=900, dark=False, touch=False):
        """Opens this page, and comes back when it has been drawn."""
        self.said.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[theme])
        self.call("Page.navigate", url=page.as_uri())
        self.settle()

    def settle(self):
        """All that has happened is drawn."""
        self.run(
            "new Promise(done => { const look = () => document.readyState === 'complete' ?"
            " requestAnimationFrame(() => requestAnimationFrame(() => done())) : setTimeout(look, 10); look(); })"
        )

    def run(self, script):
        """The value of this expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"])
        return done["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def move(self, x, y):
        self.mouse("Moved", x, y)

    def drag(self, x, y, to):
        self.move(x, y)
        self.mouse("Pressed", x, y, button="left", clickCount=1)
        for share in (0.3, 0.7, 1):
            self.mouse("Moved", x + (to - x) * share, y, button="left", buttons=1)
        self.mouse("Released", to, y, button="left", clickCount=1)
        self.settle()

    def double_click(self, x, y):
        for count in (1, 2):
            self.mouse("Pressed", x, y, button="left", clickCount=count)
            self.mouse("Released", x, y, button="left", clickCount=count)
        self.settle()

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else ""
            )
        self.settle()

    def fingers(self, kind, *points):
        """Fingers at these points; kind is Start, Move or End."""
        touches = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=f"touch{kind}", touchPoints=touches)

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
