"use strict";
// The report without this script is whole: it filters the matrix, moves in it by keys, copies scripts and opens what a link names.

(() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // ---- the words of patterns: verdicts by their letter, and what they come to whatever the kind of the case ----
  const words = byId("words") ? JSON.parse(byId("words").textContent) : {};
  const letters = Object.fromEntries(Object.entries(words).map(([letter, word]) => [word, letter]));
  const set = (...names) => new Set(names.map((name) => letters[name]));
  const classes = {
    correct: () => set("holds", "not reproduced"),
    wrong: () => set("fails", "reproduced"),
    raised: () => set("raises", "loud"),
    dead: () => set("crashes", "hangs"),
    crashed: () => set("crashes"),
    "timed out": () => set("hangs"),
    any: () => new Set(Object.keys(words)),
  };

  const lettersOf = (text) => {
    const union = new Set();
    for (const part of text.split(/\s+or\s+/)) {
      const negated = !(part in letters) && part.startsWith("not ");
      const word = negated ? part.slice(4).trim() : part;
      const found = word in letters ? set(word) : word in classes ? classes[word]() : null;
      if (!found) {
        throw new Error(`“${word}” is no verdict: expected one of ${[...Object.keys(classes), ...Object.keys(letters)].join(", ")}`);
      }
      const unseen = set("missing", "skipped", "broken");
      const wanted = negated ? Object.keys(words).filter((letter) => !found.has(letter) && !unseen.has(letter)) : found;
      wanted.forEach((letter) => union.add(letter));
    }
    return union;
  };

  // A pattern is a list of steps, oldest first: which verdicts, and on which releases they may stand.
  const parsePattern = (text) =>
    text
      .toLowerCase()
      .split(/\s*(?:,|→|->|>|\bthen\b)\s*/)
      .map((part) => part.trim().replace(/\s+/g, " "))
      .filter(Boolean)
      .map((part) => {
        const at = part.match(/^(.*?)\s+(?:at|on|in)\s+v?(\S+)$/);
        const when = part.match(/^(.*?)\s+(before|now)$/);
        const word = at ? at[1] : when ? when[1] : part;
        const place = at
          ? (release) => release === at[2] || release.startsWith(at[2] + ".") || release.startsWith(at[2] + "+")
          : when && when[2] === "now"
            ? (_, position, last) => position === last
            : when
              ? (_, position, last) => position < last
              : () => true;
        return { verdicts: lettersOf(word), place };
      });

  const fits = (codes, releases, pattern) => {
    let step = 0;
    for (let position = 0; position < codes.length && step < pattern.length; position += 1) {
      const { verdicts, place } = pattern[step];
      if (verdicts.has(codes[position]) && place(releases[position], position, codes.length - 1)) step += 1;
    }
    return step === pattern.length;
  };

  // ---- the matrix ----
  const form = byId("filters");
  if (form) {
    const fields = ["text", "group", "kind", "mechanism", "verdict", "news", "query"];
    const field = (name) => byId(`f-${name}`);
    const rows = all("table.matrix").flatMap((table) => {
      const releases = table.dataset.releases.split(" ");
      return all("tbody", table).flatMap((body) =>
        all("tr[data-c]", body).map((row) => {
          const link = row.querySelector("a");
          return {
            row, body, releases, codes: row.dataset.c, kind: row.dataset.k, mechanism: row.dataset.m, group: body.dataset.g, news: "n" in row.dataset,
            text: `${link.textContent} ${link.title} ${body.dataset.t} ${row.dataset.m}`.toLowerCase(),
          };
        }),
      );
    });
    const options = (name, key) => {
      for (const value of new Set(rows.map((entry) => entry[key]).filter(Boolean))) field(name).add(new Option(value));
    };
    options("group", "group");
    options("mechanism", "mechanism");

    const apply = () => {
      const wanted = Object.fromEntries(fields.map((name) => [name, field(name).value.trim()]));
      let pattern = [];
      const error = byId("query-error");
      try {
        pattern = parsePattern(wanted.query);
        error.hidden = true;
      } catch (problem) {
        error.textContent = problem.message;
        error.hidden = false;
      }
      field("query").setAttribute("aria-invalid", String(!error.hidden));
      const needles = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
      const verdict = letters[wanted.verdict];
      const open = new Set();
      let shown = 0;
      for (const entry of rows) {
        const show =
          (!wanted.group || entry.group === wanted.group) &&
          (!wanted.kind || entry.kind === wanted.kind) &&
          (!wanted.mechanism || entry.mechanism === wanted.mechanism) &&
          (!verdict || entry.codes.includes(verdict)) &&
          (!wanted.news || entry.news) &&
          needles.every((needle) => entry.text.includes(needle)) &&
          fits(entry.codes, entry.releases, pattern);
        entry.row.hidden = !show;
        if (show) {
          shown += 1;
          open.add(entry.body);
        }
      }
      for (const body of new Set(rows.map((entry) => entry.body))) body.hidden = !open.has(body);
      byId("shown").textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
      const kept = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
      if (kept.size || location.hash.startsWith("#show?")) {
        try {
          history.replaceState(null, "", kept.size ? `#show?${kept}` : "#matrix");
        } catch { /* A browser that forbids this on files still filters. */ }
      }
    };
    const restore = () => {
      if (!location.hash.startsWith("#show?")) return;
      for (const [name, value] of new URLSearchParams(location.hash.slice(6))) if (fields.includes(name)) field(name).value = value;
      apply();
      byId("matrix").scrollIntoView();
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(apply));
    for (const button of all("button.try")) {
      button.addEventListener("click", () => {
        field("query").value = button.textContent;
        apply();
        field("query").focus();
      });
    }
    if (location.hash.startsWith("#show?")) restore();
    else apply();
    window.addEventListener("hashchange", restore);
  }

  // ---- moving in a matrix: arrow keys, Enter, and a line that says in words what a cell says in a glyph ----
  for (const table of all("table.matrix")) {
    const releases = table.dataset.releases.split(" ");
    const line = table.closest("section").querySelector("p.where");
    const first = table.querySelector("td");
    if (!first) continue;
    first.tabIndex = 0;
    let current = first;
    const inWords = (cell) => {
      const names = cell.className.split(" ");
      const rule = names.includes("mr") ? ", rests on a rule of the model" : "";
      const timing = names.includes("mt") ? ", depends on assumed durations" : "";
      return `${words[names[0]]}${rule}${timing}`;
    };
    const facts = (cell) => {
      const link = cell.parentElement.querySelector("a");
      const release = releases[cell.cellIndex - 1];
      return { href: `${link.getAttribute("href")}#at=${encodeURIComponent(release)}`, text: `${link.textContent} on ${release}: ${inWords(cell)}` };
    };
    const say = (cell) => {
      cell.title = facts(cell).text;
      line.textContent = cell.title;
    };
    // Who listens to the page hears words for glyphs; the headers of row and column are read with them.
    const later = window.requestIdleCallback ?? setTimeout;
    later(() => all("td", table).forEach((cell) => cell.setAttribute("aria-label", inWords(cell))));
    const cellOf = (event) => event.target.closest("td");
    table.addEventListener("mouseover", (event) => cellOf(event) && say(cellOf(event)));
    table.addEventListener("focusin", (event) => cellOf(event) && say(cellOf(event)));
    table.addEventListener("click", (event) => {
      if (cellOf(event)) location.href = facts(cellOf(event)).href;
    });
    table.addEventListener("keydown", (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      if (event.key === "Enter") location.href = facts(cell).href;
      const visible = all("tr[data-c]", table).filter((row) => !row.hidden && !row.parentElement.hidden);
      const row = visible.indexOf(cell.parentElement);
      const next = {
        ArrowLeft: () => cell.previousElementSibling,
        ArrowRight: () => cell.nextElementSibling,
        ArrowUp: () => visible[row - 1]?.cells[cell.cellIndex],
        ArrowDown: () => visible[row + 1]?.cells[cell.cellIndex],
        Home: () => cell.parentElement.cells[1],
        End: () => cell.parentElement.lastElementChild,
      }[event.key]?.();
      if (!next || next.tagName !== "TD") return;
      event.preventDefault();
      current.removeAttribute("tabindex");
      next.tabIndex = 0;
      current = next;
      next.focus();
    });
  }

  // ---- copying a script ----
  const copied = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy"); // Old, and the only way where a page from disk may not use the clipboard.
      area.remove();
      return done;
    }
  };
  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const done = await copied(byId(button.dataset.copy).textContent);
      button.parentElement.querySelector(".copied").textContent = done ? "Copied." : "The browser refused: open the script below and copy it.";
    });
  }

  // ---- a case's page opens what was seen on the release that a link names ----
  const openNamed = () => {
    if (!location.hash.startsWith("#at=")) return;
    const release = decodeURIComponent(location.hash.slice(4));
    const eras = all("details.era").filter((era) => era.dataset.releases.split(" ").includes(release));
    for (const era of all("details.era")) era.open = eras.includes(era);
    eras[0]?.scrollIntoView({ block: "center" });
  };
  openNamed();
  window.addEventListener("hashchange", openNamed);
  document.documentElement.dataset.ready = "yes";
})();
