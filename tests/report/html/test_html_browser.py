"""The report in a real browser, opened from disk: filters, patterns, keys, copying, nothing loaded, no error, phone and dark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import RELEASES, Made

from replaydrift.report.html.paths import case_page, release_page
from replaydrift.script import find_case, script_of

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: it is in the extra `test`")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium and chromedriver on this machine")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,1000",
)  # fmt: skip


class Browser:
    """A browser on the site, which remembers what pages asked for and complained about."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, name: str) -> None:
        """Load a page of the site afresh and wait until its script has run."""
        self.driver.get("about:blank")
        self.driver.get(f"file://{self.folder}/{name}")
        WebDriverWait(self.driver, 20).until(lambda _: self.js("return document.documentElement.dataset.ready") == "yes")

    def js(self, code: str, *arguments: object) -> Any:
        """What the code returns in the page."""
        return self.driver.execute_script(code, *arguments)

    def one(self, selector: str) -> Any:
        """The first element of the selector."""
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        """All elements of the selector."""
        return list(self.driver.find_elements("css selector", selector))

    def fill(self, field: str, value: str) -> None:
        """Set a filter as a person would: by typing, or by choosing."""
        self.js(
            "const field = document.getElementById(arguments[0]); field.value = arguments[1];"
            "field.dispatchEvent(new Event('input', {bubbles: true}))",
            field, value,
        )  # fmt: skip

    def rows(self, machine: str = "h200") -> list[str]:
        """The cases that the matrix of a machine shows now."""
        shown = self.js(
            "return [...document.querySelectorAll(`[data-machine='${arguments[0]}'] tr[data-c]`)]"
            ".filter((row) => row.offsetParent).map((row) => row.cells[0].innerText.trim())",
            machine,
        )
        return list(shown)

    def requests(self) -> list[str]:
        """What was asked for since the last call, files and inline data left out."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:", "about:", "chrome:"))]

    def complaints(self) -> list[str]:
        """Errors and warnings of the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser for all tests of this file, with a fresh profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(DRIVER))
    made.set_page_load_timeout(60)
    yield made
    made.quit()


@pytest.fixture
def browser(driver: Any, made: Made) -> Iterator[Browser]:
    """The browser on the small site, at the size of a desk."""
    one = Browser(driver, made.folder)
    driver.get("about:blank")  # The browser starts with a page of its own, which loads a lot.
    one.requests()
    one.complaints()
    yield one
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_every_page_opens_quietly(browser: Browser) -> None:
    """No page asks a network for anything, logs an error, or lets what a case printed run."""
    for path in sorted(browser.folder.rglob("*.html")):
        browser.open(str(path.relative_to(browser.folder)))
        assert browser.js("return document.title") != "pwned"
    assert browser.requests() == []
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("field", "value", "rows"),
    [
        ("f-kind", "fix", ["shared-pool/fix-capture-order"]),
        ("f-group", "rng", ["rng/custom-unregistered"]),
        ("f-mechanism", "frozen pointer", ["shared-pool/bug", "shared-pool/fix-capture-order"]),
        ("f-verdict", "flaky", ["gone/bug"]),
        ("f-news", "1", ["rng/custom-unregistered", "shared-pool/fix-capture-order"]),
        ("f-text", "Y2 gone", ["shared-pool/bug"]),
        ("f-text", "no such thing", []),
        ("f-query", "raised before, correct now", ["rng/custom-unregistered"]),
        ("f-query", "correct then wrong", ["shared-pool/fix-capture-order"]),
        ("f-query", "wrong then correct", []),
        ("f-query", "not reproduced", []),
        ("f-query", "reproduced at 2.11", ["shared-pool/bug"]),
        ("f-query", "fails at 2.13", []),
        ("f-query", "not correct now", ["gone/bug", "shared-pool/bug", "shared-pool/fix-capture-order"]),
        ("f-query", "raises or flaky", ["gone/bug", "rng/custom-unregistered"]),
        ("f-query", "raised → raised → raised → holds", ["rng/custom-unregistered"]),
        ("f-query", "raised, raised, raised, raised", []),
    ],
)
def test_filters(browser: Browser, field: str, value: str, rows: list[str]) -> None:
    """Each filter leaves the rows that fit, and says how many they are."""
    browser.open("index.html")
    browser.fill(field, value)
    assert sorted(browser.rows()) == rows
    assert browser.one("#shown").text == f"{2 * len(rows)} of 8 rows"


def test_filters_combine_and_go(browser: Browser) -> None:
    """Filters narrow each other; the button shows everything again."""
    browser.open("index.html")
    browser.fill("f-group", "shared-pool")
    browser.fill("f-kind", "bug")
    assert browser.rows() == ["shared-pool/bug"]
    browser.one("button[type=reset]").click()
    WebDriverWait(browser.driver, 5).until(lambda _: len(browser.rows()) == 4)


def test_pattern_with_an_unknown_word(browser: Browser) -> None:
    """A word that is no verdict is named, with those that are; the table stays as it was."""
    browser.open("index.html")
    browser.fill("f-query", "broke before, correct now")
    assert "“broke” is no verdict: expected one of correct, wrong" in browser.one("#query-error").text
    assert len(browser.rows()) == 4
    browser.fill("f-query", "correct now")
    assert not browser.one("#query-error").is_displayed()


def test_offered_patterns_work(browser: Browser) -> None:
    """Each pattern that the page offers as a button is understood."""
    browser.open("index.html")
    for button in browser.all("button.try"):
        button.click()
        assert browser.js("return document.getElementById('f-query').value") == button.text
        assert not browser.one("#query-error").is_displayed()


def test_a_filtered_view_has_a_link(browser: Browser) -> None:
    """The address keeps the filters, so that a view can be sent to somebody."""
    browser.open("index.html")
    browser.fill("f-query", "raised before, correct now")
    address = browser.js("return location.hash")
    browser.open(f"index.html{address}")
    assert browser.rows() == ["rng/custom-unregistered"]


def test_matrix_by_keyboard(browser: Browser) -> None:
    """Arrow keys move from cell to cell over hidden rows, a line says what each means, and Enter opens the case at its release."""
    browser.open("index.html")
    browser.fill("f-kind", "bug")
    cell = browser.one("[data-machine=h200] td[tabindex='0']")
    cell.send_keys(Keys.ARROW_RIGHT)
    line = browser.one("[data-machine=h200] p.where")
    assert line.text == f"shared-pool/bug on {RELEASES[1]}: reproduced"
    browser.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert line.text == f"gone/bug on {RELEASES[1]}: flaky"
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert case_page("gone/bug") in browser.driver.current_url
    assert browser.driver.current_url.endswith("#at=2.12.1%2Bcu130")


def test_cells_are_read_as_words(browser: Browser) -> None:
    """Who listens to the page hears the verdict and its reservations, not the name of a glyph."""
    browser.open("index.html")
    labels = "return [...document.querySelectorAll('[data-machine=model] tr[data-c] td:nth-child(2)')].map((one) => one.ariaLabel)"
    WebDriverWait(browser.driver, 5).until(lambda _: all(browser.js(labels)))
    assert sorted(browser.js(labels)) == [
        "flaky",
        "holds, depends on assumed durations",
        "raises",
        "reproduced, rests on a rule of the model",
    ]


def test_a_cell_opens_what_was_seen_there(browser: Browser) -> None:
    """A link to a case on a release opens that release's part of the page, and no other."""
    browser.open(f"{case_page('rng/custom-unregistered')}#at=2.11.0%2Bcu130")
    opened = [era.get_attribute("data-releases") for era in browser.all("details.era[open]")]
    assert opened == [RELEASES[0], RELEASES[0]]


def test_strip(browser: Browser) -> None:
    """A strip has a cell a step: observed larger than correct, steps told apart, what differs marked by more than colour."""
    browser.open(case_page("shared-pool/bug"))
    cells = browser.all("#on-h200 details[open] .strip .cell")
    assert [cell.text.split("\n") for cell in cells] == [["warm-up", "8", "exp 8"], ["capture", "4", "exp 4"], ["replay", "3", "≠ exp 4"]]
    size = "return parseFloat(getComputedStyle(arguments[0].querySelector(arguments[1])).fontSize)"
    assert browser.js(size, cells[0], ".observed") > 1.4 * browser.js(size, cells[0], ".correct")
    tops = [browser.js("const s = getComputedStyle(arguments[0]); return s.borderTopStyle", cell) for cell in cells]
    assert len(set(tops)) == 3


@pytest.mark.parametrize("allowed", [True, False])
def test_copying_the_script(browser: Browser, made: Made, allowed: bool) -> None:
    """The button copies the whole stand-alone script, also where the browser's clipboard is closed to pages from disk."""
    browser.open(case_page("shared-pool/bug"))
    browser.js(
        "window.kept = []; document.addEventListener('copy', () => window.kept.push(document.activeElement.value));"
        "const write = (text) => arguments[0] ? (window.kept.push(text), Promise.resolve()) : Promise.reject();"
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: write}})",
        allowed,
    )
    browser.one("button.copy").click()
    WebDriverWait(browser.driver, 5).until(lambda _: browser.one(".copied").text)
    assert browser.one(".copied").text == "Copied."
    assert browser.js("return window.kept") == [script_of(find_case(made.facts.catalogue.library, "shared-pool/bug"))]


PAGES = (
    "index.html",
    case_page("shared-pool/bug"),
    case_page("gone/bug"),
    release_page(RELEASES[3]),
    "differs.html",
    "audit.html",
    "costs.html",
    "agreement.html",
)


@pytest.mark.parametrize("name", PAGES)
def test_phone(browser: Browser, name: str) -> None:
    """On a phone of 360 pixels no page scrolls sideways, with everything unfolded."""
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    )
    browser.open(name)
    browser.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.js("return document.documentElement.scrollWidth") <= 360


def test_dark(browser: Browser) -> None:
    """The page follows the scheme that the reader's system asks for."""
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.open("index.html")
    assert browser.js(ground) == "rgb(255, 255, 255)"
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    assert browser.js(ground) == "rgb(15, 19, 24)"


def test_large_front_page_is_ready_in_a_second(browser: Browser, large: Path) -> None:
    """With 20 releases and 300 cases the page can be used within a second, and a pattern is answered in a fifth of one."""
    site = Browser(browser.driver, large)
    times = []
    for _ in range(3):
        site.open("index.html")
        times.append(site.js("return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    assert len(site.rows()) == 300
    assert min(times) < 1000
    took = site.js(
        "const field = document.getElementById('f-query'); field.value = 'raised before, correct now'; const start = performance.now();"
        "field.dispatchEvent(new Event('input', {bubbles: true})); document.body.offsetHeight; return performance.now() - start",
    )
    assert 0 < len(site.rows()) < 300
    assert took < 200


def test_the_watch_sees_requests(browser: Browser, tmp_path: Path) -> None:
    """A page that does ask a network for something is noticed: the test above could fail."""
    page = tmp_path / "asks.html"
    page.write_text("<img src='http://127.0.0.1:9/picture.png'><script>console.error('seen')</script>", encoding="utf-8")
    browser.driver.get(f"file://{page}")
    assert browser.requests() == ["http://127.0.0.1:9/picture.png"]
    assert any("seen" in message for message in browser.complaints())
