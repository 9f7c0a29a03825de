"""The pages of reports in a real browser: links between lines, sizes of screens, colours, keys, requests."""

import json
import pathlib
import shutil

import numpy as np
import pytest

from polyop.core.dtypes import dtype
from polyop.core.spec import Spec

for needed in ("jinja2", "pygments", "selenium"):
    pytest.importorskip(needed, reason=f"not run: {needed} is not installed")

from selenium import webdriver  # noqa: E402 - after the checks above
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

import report_kernels as kernels  # noqa: E402 - in tests/support

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="not run: chromium and chromedriver are not installed (apt-get install chromium chromium-driver)",
    ),
]
NARROW, WIDE = 380, 1400


def spec(*shape):
    return Spec(shape, dtype("float32"), "cpu")


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Reports as files, by name: measured, with serial loops, with a tape, without loops."""
    folder = tmp_path_factory.mktemp("pages")
    kernels.softmax.report(np.ones((64, 128), np.float32), path=folder / "softmax.html")
    kernels.sweep.report(spec(64, 64), path=folder / "sweep.html", measure=False)
    kernels.attention.report(*(spec(32, 8),) * 3, path=folder / "attention.html", measure=False)
    kernels.doubled.report(np.ones(3, np.float32), path=folder / "doubled.html", measure=False)
    return folder


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def open_page(browser, path, width=WIDE, scheme="light"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(path.as_uri())


def classes(browser, selector, name):
    """Return how many elements of a selector have a class."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(n => n.classList.contains(arguments[1])).length",
        selector,
        name,
    )


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("name", ["softmax", "sweep", "attention", "doubled"])
def test_nothing_overflows(browser, pages, name, width):
    open_page(browser, pages / f"{name}.html", width)
    for tab in [None, *browser.find_elements(By.CSS_SELECTOR, "[role=tab]")]:
        if tab is not None:
            tab.click()
        needs, has = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert needs <= has == width
    wider = browser.execute_script(
        """return [...document.querySelectorAll("body *")].filter(
             n => !n.closest(".code, pre, svg, .skip") && n.getBoundingClientRect().right > innerWidth + 1
           ).map(n => n.outerHTML.slice(0, 200))"""
    )
    assert wider == []


@pytest.mark.parametrize("name", ["softmax", "sweep", "attention", "doubled"])
def test_no_request_leaves_the_page_and_no_script_fails(browser, pages, name):
    browser.get_log("performance")
    browser.get_log("browser")
    open_page(browser, pages / f"{name}.html")
    for tab in browser.find_elements(By.CSS_SELECTOR, "[role=tab]"):
        tab.click()
    rows = [json.loads(row["message"])["message"] for row in browser.get_log("performance")]
    asked = {r["params"]["request"]["url"] for r in rows if r["method"] == "Network.requestWillBeSent"}
    assert (pages / f"{name}.html").as_uri() in asked
    assert all(url.startswith(("data:", pages.as_uri())) for url in asked), asked
    assert browser.get_log("browser") == []


def test_pointing_at_a_line_lights_up_the_others(browser, pages):
    open_page(browser, pages / "softmax.html")
    row = next(r for r in browser.find_elements(By.CSS_SELECTOR, "#forward .py .ln") if "exp(" in r.text)
    line = row.get_attribute("data-l")
    webdriver.ActionChains(browser).move_to_element(row).perform()
    for panel in ("#f-c", "#f-asm", "#f-passes"):
        assert classes(browser, f"{panel} .ln[data-l='{line}']", "lit") > 0, panel
    assert classes(browser, f".ln[data-l]:not([data-l='{line}'])", "lit") == 0
    row.click()  # keeps it
    webdriver.ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h1")).perform()
    assert classes(browser, ".ln", "lit") == 0
    assert classes(browser, f"#f-c .ln[data-l='{line}']", "pinned") > 0
    browser.find_element(By.ID, "f-c-tab").click()
    shown = browser.execute_script(
        """const pane = document.querySelector("#f-c .code"), row = pane.querySelector(".pinned");
           const [a, b] = [pane.getBoundingClientRect(), row.getBoundingClientRect()];
           return b.top >= a.top && b.bottom <= a.bottom;"""
    )
    assert shown
    webdriver.ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert classes(browser, ".ln", "pinned") == 0


def test_arrows_of_iterations_and_accesses_are_linked(browser, pages):
    open_page(browser, pages / "sweep.html")
    access = browser.find_element(By.CSS_SELECTOR, "#loops .access")
    webdriver.ActionChains(browser).move_to_element(access).perform()
    line = access.get_attribute("data-l")
    assert classes(browser, f"#forward .py .ln[data-l='{line}']", "lit") == 1
    assert classes(browser, "#space path.dep", "lit") > 0


def test_all_is_reached_with_keys(browser, pages):
    open_page(browser, pages / "softmax.html")
    reached = []
    for _ in range(400):
        webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
        where = browser.execute_script(
            "const n = document.activeElement; return [n.tagName, n.id, n.className, n.closest('section')?.id || '']"
        )
        if where[0] == "BODY" or (len(reached) > 20 and where == reached[0]):
            break
        reached.append(where)
    assert {"answers", "time"} <= {w.removeprefix("#") for w in ids_of_links(browser)}
    sections = {where[3] for where in reached}
    assert {"loops", "forward", "gradient", "space", "explain"} <= sections
    assert any(where[1] == "theme" for where in reached)
    assert sum(where[1] in ("f-passes-tab", "g-passes-tab") for where in reached) == 2
    first = browser.find_element(By.CSS_SELECTOR, "#forward .py .ln")
    browser.execute_script("arguments[0].focus()", first)
    webdriver.ActionChains(browser).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER).perform()
    line = browser.execute_script("return document.activeElement.dataset.l")
    assert line == str(int(first.get_attribute("data-l")) + 2)
    assert classes(browser, "#forward .py .ln", "pinned") == 1
    tab = browser.find_element(By.ID, "f-passes-tab")
    browser.execute_script("arguments[0].focus()", tab)
    webdriver.ActionChains(browser).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT).perform()
    assert browser.find_element(By.ID, "f-asm").is_displayed()
    assert not browser.find_element(By.ID, "f-passes").is_displayed()


def ids_of_links(browser):
    return [a.get_attribute("href").rpartition("/")[2].rpartition(".html")[2] for a in links(browser)]


def links(browser):
    return browser.find_elements(By.CSS_SELECTOR, "a[href]")


@pytest.mark.parametrize("name", ["softmax", "doubled"])
def test_each_link_leads_to_a_place_of_the_page(browser, pages, name):
    open_page(browser, pages / f"{name}.html")
    targets = ids_of_links(browser)
    assert len(targets) > 3
    for target in targets:
        assert browser.find_elements(By.CSS_SELECTOR, target), target


def test_dark_and_light_and_the_switch(browser, pages):
    def colours():
        return browser.execute_script(
            "const s = getComputedStyle(document.body); return [s.backgroundColor, s.color].map(c => "
            "c.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b))"
        )

    for scheme, is_dark in (("light", False), ("dark", True)):
        open_page(browser, pages / "softmax.html", scheme=scheme)
        back, ink = colours()
        assert (back < ink) is is_dark
        assert abs(back - ink) > 450  # of 765: black on white
        switch = browser.find_element(By.ID, "theme")
        seen = []
        for _ in range(3):
            switch.click()
            back, ink = colours()
            seen.append((switch.text.split()[-1], back < ink))
        assert seen == [("light", False), ("dark", True), ("system", is_dark)]


def test_the_files_are_small(pages):
    assert all(path.stat().st_size < 4_000_000 for path in pathlib.Path(pages).iterdir())
