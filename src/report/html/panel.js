// The list of findings on the left, the chosen one on the right. Texts of the evidence are inserted as text, never as markup.

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const KINDS = [["violation", "Violations"], ["suspect", "Suspects: a violation, or missing evidence"], ["hazard", "Hazards: allowed, and unsafe as a pattern"]];

// Findings in the order of the list, consequences below their causes.
function listed(history) {
  const findings = history.raw.findings, byId = new Map(findings.map(f => [f.id, f]));
  const rank = Object.fromEntries(KINDS.map(([kind], at) => [kind, at]));
  const parent = f => { const cause = f.cause && byId.get(f.cause); return cause && cause !== f && rank[cause.kind] <= rank[f.kind] ? cause : null; };
  const out = [], met = new Set();
  const put = (finding, depth, kind) => {
    if (met.has(finding)) return;
    met.add(finding);
    out.push({ finding, depth, kind });
    if (depth < 3) for (const other of findings) if (parent(other) === finding) put(other, depth + 1, kind);
  };
  for (const [kind] of KINDS) for (const f of findings) if (f.kind === kind && !parent(f)) put(f, 0, kind);
  for (const f of findings) put(f, 0, f.kind);
  return out;
}

function showFindings() {
  const nav = document.getElementById("findings"), history = view.history;
  nav.replaceChildren();
  history.listed = listed(history);
  const matching = history.listed.filter(({ finding }) => matchesFinding(finding));
  for (const [kind, title] of KINDS) {
    const group = matching.filter(entry => entry.kind === kind);
    if (!group.length) continue;
    const shown = kind === "hazard" ? folded(group) : group;
    nav.append(element("h2", "", title + " (" + shown.length + ")"));
    for (const { finding, depth, times } of shown) nav.append(findingButton(finding, depth, times));
  }
  if (!matching.length) nav.append(element("p", "empty", history.raw.findings.length ? "No finding matches the search." : "No findings." + (history.raw.unchecked.length ? " The right side lists what was not checked." : "")));
}

// Groups hazards of one rule and client; the first one represents all, with the number of occurrences.
function folded(group) {
  const first = new Map();
  for (const { finding, depth } of group) {
    const key = JSON.stringify([finding.rule, finding.client]);
    if (!first.has(key)) first.set(key, { finding, depth, times: 0 });
    first.get(key).times += finding.repeats + 1;
  }
  const rules = [...new Set(group.map(({ finding }) => finding.rule))];
  return [...first.values()].sort((a, b) => rules.indexOf(a.finding.rule) - rules.indexOf(b.finding.rule) || b.times - a.times);
}

function findingButton(finding, depth, times = 1) {
  const button = element("button", finding.kind + (depth ? " consequence" : ""));
  button.type = "button";
  button.dataset.id = finding.id;
  button.append(element("div", "rule", finding.rule + (times > 1 ? " (" + times.toLocaleString("en") + " times)" : "")), element("div", "who", who(finding)), element("div", "what", finding.summary));
  button.setAttribute("aria-current", view.finding === finding);
  button.addEventListener("click", () => choose(finding));
  return button;
}

function who(finding) {
  const life = finding.life === finding.client ? "" : view.history.short(finding.life);
  return life ? finding.short + " · " + life : finding.short;
}

function showDetail() {
  const aside = document.getElementById("detail"), finding = view.finding, raw = view.history.raw;
  aside.replaceChildren();
  aside.scrollTop = 0;
  if (!finding) return showSummary(aside, raw);
  const kind = element("div", "kind " + finding.kind, finding.kind.toUpperCase());
  aside.append(kind, element("h1", "", finding.rule), element("div", "meta", finding.proves), element("div", "meta", finding.client + (finding.life && finding.life !== finding.client ? " · " + view.history.short(finding.life) : "")), element("p", "", finding.summary));
  const list = element("ol");
  finding.facts.forEach((fact, index) => list.append(...factItem(finding, fact, index)));
  aside.append(list);
  section(aside, "Why", finding.why);
  section(aside, "Whose promise", finding.promise);
  section(aside, "Leads to", finding.consequence);
  if (finding.prevention.length) {
    aside.append(element("h2", "", "What would have prevented it"));
    const table = element("table");
    for (const [request, effect, because] of finding.prevention) {
      const row = element("tr");
      const first = element("td", "", request);
      const second = element("td");
      second.append(element("span", effect, effect), document.createTextNode(because ? ": " + because : ""));
      row.append(first, second);
      table.append(row);
    }
    aside.append(table);
    if (finding.exploration) aside.append(element("p", "meta", finding.exploration));
  }
  section(aside, "Refuted by", finding.refuted_by);
  const alike = finding.kind === "hazard" ? raw.findings.filter(f => f.kind === "hazard" && f.rule === finding.rule && f.client === finding.client && f !== finding) : [];
  if (alike.length) aside.append(element("h2", "", "The same rule and client"));
  for (const other of alike.slice(0, 60)) {
    const button = element("button", "alike", other.summary);
    button.type = "button";
    button.addEventListener("click", () => choose(other));
    aside.append(button);
  }
  if (alike.length > 60) aside.append(element("p", "meta", "and " + (alike.length - 60).toLocaleString("en") + " more; the JSON report names each."));
  if (finding.repeats) section(aside, "Repeats", finding.repeats + " more with the same cause; the JSON report names each.");
}

function factItem(finding, fact, index) {
  const raw = view.history.raw;
  const item = element("li", "fact");
  item.append(element("span", "number", index + 1), element("div", "", fact.says));
  const meta = [fact.time && fact.time + (fact.clock ? " (" + view.history.short(fact.clock) + ")" : ""), fact.revision && "revision " + fact.revision, fact.who, fact.server && "server " + view.history.short(fact.server)];
  item.append(element("div", "meta", meta.filter(Boolean).join(" · ")));
  if (fact.file >= 0) {
    const place = element("div", "meta", view.history.files[fact.file] + (fact.line ? ":" + fact.line : ""));
    place.title = view.history.raw.files[fact.file];
    item.append(place);
  }
  if (fact.raw) {
    const details = element("details");
    details.append(element("summary", "", raw.kind === "operations" ? "the line of the evidence" : "identity, versions and times in the line"), element("pre", "", fact.raw));
    item.append(details);
  }
  const edges = finding.edges.filter(([from]) => from === index)
    .map(([, to, reason]) => element("li", "edge", (index + 1) + " → " + (to + 1) + ": " + reason));
  return [item, ...edges];
}

function section(aside, title, text) {
  if (!text) return;
  aside.append(element("h2", "", title), element("p", "", text));
}

function showSummary(aside, raw) {
  aside.append(element("h1", "", "verdict: " + raw.verdict));
  if (raw.reason) aside.append(element("p", "", raw.reason));
  if (raw.undecided) aside.append(element("p", "", raw.undecided + "."));
  const operations = view.history.lanes.reduce((n, lane) => n + lane.t.length, 0);
  const events = view.history.lanes.reduce((n, lane) => n + lane.et.length, 0);
  const many = (n, what) => n.toLocaleString("en") + " " + what + (n === 1 ? "" : "s");
  const lives = raw.kind === "kubernetes" ? "incarnation" : "client";
  const counts = [many(raw.lanes.length, lives).replace("lifes", "lives"), many(operations, raw.kind === "operations" ? "call" : "operation")];
  if (raw.kind !== "operations") counts.push(many(events, "watch event"));
  aside.append(element("p", "", "On this page: " + counts.join(", ") + "."));
  if (raw.omitted[0] + raw.omitted[1]) {
    aside.append(element("p", "", raw.omitted[0].toLocaleString("en") + " operations and " + raw.omitted[1].toLocaleString("en")
      + " watch events are not: the recording is too large for a page, so only " + (raw.findings.length ? "what is near a finding" : "its beginning") + " is drawn in full. The lines of revisions are thinned; no fall is left out."));
  }
  if (raw.problems) aside.append(element("p", "", raw.problems.toLocaleString("en") + " lines of the evidence could not be used."));
  if (raw.clocks.length > 1) aside.append(element("p", "meta", "Times are those of " + raw.clocks.length + " clocks, drawn as recorded: " + raw.clocks.slice(0, 12).join(", ") + (raw.clocks.length > 12 ? ", …" : "")));
  if (raw.unchecked.length) {
    aside.append(element("h2", "", "Not checked"));
    for (const text of raw.unchecked.slice(0, 60)) aside.append(element("p", "", text));
  }
}

function showLegend() {
  const legend = document.getElementById("legend"), entries = [];
  if (document.body.dataset.revisions === "none" && !view.history.lanes.length) {
    legend.replaceChildren(element("span", "", "No record of this evidence has a client or a time, so there is no picture. The findings have its lines."));
    return;
  }
  const entry = (colour, text, mark = "") => {
    const span = element("span"), line = element("i", mark);
    line.style.color = colour;
    span.append(line, document.createTextNode(text));
    entries.push(span);
  };
  if (view.history.raw.domains.length) entry(palette.head, "watermark: highest revision shown so far");
  for (const [lane, colour] of accents()) {
    const label = view.history.lanes[lane].label;
    entry(colour, label.length > 40 ? label.slice(0, 39) + "…" : label);
  }
  if (view.history.raw.lines.length) { entry(palette.watch, view.history.raw.kind === "etcd" ? "progress of other clients and watches" : "progress of other watchers"); entry(palette.bad, "went back"); }
  if (view.history.violations.length && view.history.raw.domains.length) entry(palette.bad, "a violation", "here");
  const has = (test) => view.history.lanes.some(lane => test(lane));
  if (view.history.raw.kind === "operations") entry(palette.read, "call", "bar");
  else {
    entry(palette.read, "read", "bar");
    entry(palette.write, "write", "bar");
  }
  if (has(lane => lane.s.some(status => status >= 400))) entry(palette.read, "refused", "bar hollow");
  if (has(lane => lane.until.size)) entry(palette.read, "outcome unknown", "bar open");
  if (has(lane => lane.watches)) entry(palette.watch, "watch", "bar thin");
  if (has(lane => lane.et.length)) entry(palette.event, "watch event", "tick");
  legend.replaceChildren(...entries);
}
