"use strict";
// Lines of one number belong together: pointing at one lights up the others; a click or Enter keeps them lit.
(() => {
  const linked = [...document.querySelectorAll("[data-l]")];
  const byLine = new Map();
  for (const node of linked) {
    for (const line of node.dataset.l.split(" ")) {
      byLine.set(line, [...(byLine.get(line) || []), node]);
    }
  }
  for (const node of linked) node.style.setProperty("--i", node.dataset.l.split(" ")[0]);
  for (const pane of document.querySelectorAll(".code")) {
    const lines = pane.querySelectorAll(".ln");
    for (const line of lines) line.tabIndex = -1;
    if (lines.length) lines[0].tabIndex = 0;
  }
  const keys = ["lit", "pinned"];
  const shown = { lit: [], pinned: [] };
  let pinned = "";

  function paint(kind, lines) {
    for (const node of shown[kind]) node.classList.remove(kind);
    shown[kind] = lines ? lines.split(" ").flatMap((line) => byLine.get(line) || []) : [];
    for (const node of shown[kind]) node.classList.add(kind);
    if (lines) tell(lines.split(" "));
  }

  function tell(lines) {
    for (const form of document.querySelectorAll(".form")) {
      const info = form.querySelector(".info");
      info.textContent = "";
      for (const line of lines) {
        const row = form.querySelector(`.py .ln[data-l="${line}"]`);
        const said = row && row.querySelector("template");
        const head = document.createElement("li");
        head.textContent = `line ${line}${said ? "" : ": the compiler has nothing to say of it"}`;
        info.append(head);
        if (said) info.append(said.content.cloneNode(true));
      }
    }
  }

  function bring(lines, from) {
    // each pane scrolls by itself, so the page stays where it is
    for (const pane of document.querySelectorAll(".code")) {
      if (pane.contains(from) || pane.offsetParent === null) continue;
      // in machine code the line of the innermost loop, which is where the time goes
      const depth = (row) => row.querySelectorAll(".depth i").length;
      const rows = [...pane.querySelectorAll(".pinned")];
      const first = rows.reduce((best, row) => (best && depth(best) >= depth(row) ? best : row), null);
      if (first) pane.scrollTop += first.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
    }
  }

  function pin(node) {
    const lines = node.dataset.l;
    pinned = pinned === lines ? "" : lines;
    paint("pinned", pinned);
    if (pinned) bring(pinned, node);
  }

  const owner = (event) => event.target.closest && event.target.closest("[data-l]");
  document.addEventListener("mouseover", (event) => {
    const node = owner(event);
    paint("lit", node ? node.dataset.l : "");
  });
  document.addEventListener("focusin", (event) => {
    const node = owner(event);
    paint("lit", node ? node.dataset.l : "");
  });
  document.addEventListener("click", (event) => {
    const node = owner(event);
    if (node && !event.target.closest("a, button, summary")) pin(node);
  });
  document.addEventListener("keydown", (event) => {
    const node = event.target;
    if (event.key === "Escape") {
      pinned = "";
      for (const kind of keys) paint(kind, "");
    } else if (event.key === "Enter" && node.dataset && node.dataset.l) {
      pin(node);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!node.classList || !node.classList.contains("ln")) return;
      const lines = [...node.closest(".code").querySelectorAll(".ln")];
      const next = lines[lines.indexOf(node) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) move(node, next);
      event.preventDefault();
    }
  });

  // one line of each pane is a stop of the Tab key: the one that had the focus last
  function move(from, to) {
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  }

  for (const bar of document.querySelectorAll('[role="tablist"]')) {
    const tabs = [...bar.querySelectorAll('[role="tab"]')];
    const choose = (tab) => {
      for (const one of tabs) {
        const on = one === tab;
        one.setAttribute("aria-selected", String(on));
        one.tabIndex = on ? 0 : -1;
        document.getElementById(one.getAttribute("aria-controls")).hidden = !on;
      }
      if (pinned) bring(pinned, null);
    };
    bar.addEventListener("click", (event) => {
      if (tabs.includes(event.target)) choose(event.target);
    });
    bar.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    });
  }

  const themes = ["system", "light", "dark"];
  const button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "system";
    const next = themes[(themes.indexOf(now) + 1) % themes.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    button.querySelector("span").textContent = next;
    button.setAttribute("aria-label", `Colours: ${next === "system" ? "as the system has them" : next}`);
  });
})();
