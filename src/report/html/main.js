// Connects the parts: selection, search, movement, and the link that restores a view.

const $ = id => document.getElementById(id);

function openHistory(index) {
  view.history = page.prepared[index] ??= prepare(page.histories[index]);
  view.index = index;
  view.finding = null;
  view.matches = null;
  const raw = view.history.raw;
  const weight = raw.domains.map((domain, at) => domain.head.length + raw.lines.filter(l => l.domain === at).length * 4
    + raw.findings.filter(f => f.facts.some(fact => fact.domain === at && fact.r >= 0)).length * 1000);
  view.domain = Math.max(0, weight.indexOf(Math.max(...weight)));
  const box = $("domain");
  box.hidden = raw.domains.length < 2;
  box.replaceChildren(...raw.domains.map((domain, at) => { const o = element("option", "", "revisions of " + domain.name); o.value = at; return o; }));
  box.value = view.domain;
  document.body.dataset.revisions = raw.domains.some(domain => domain.head.length) || raw.lines.length ? "some" : "none";
  document.body.dataset.lanes = view.history.lanes.length ? "some" : "none";
  $("verdict").textContent = raw.verdict;
  $("verdict").className = "verdict " + raw.verdict;
  $("reach").textContent = (view.history.dated ? view.history.day(0) + ", " : "") + (view.history.last > 1 ? view.history.length(view.history.last) : "");
  document.title = "retrograde: " + raw.verdict + (raw.name ? ", " + raw.name : "");
  [view.t0, view.t1] = clampView(-view.history.last * 0.02, view.history.last * 1.02);
  search(view.query);
}

// The interval of a finding's facts, with room around it.
function reachOf(finding) {
  const short = fact => fact.operation >= 0 && view.history.lanes[fact.lane].v[fact.operation] !== WATCH;
  const begins = finding.facts.filter(short).map(fact => view.history.lanes[fact.lane].t[fact.operation]);
  const times = finding.facts.map(fact => fact.t).concat(begins).filter(t => t >= 0);
  if (!times.length) return null;
  const low = Math.min(...times), high = Math.max(...times);
  // Instants need more room around them than an interval.
  const least = high > low ? Math.max(high - low, view.history.last * 1e-5) * 0.35 : view.history.last * 0.004;
  const room = Math.max(least, view.history.raw.timed ? 50 : 4);
  return [low - room, high + room];
}

function choose(finding, travel = true) {
  view.finding = finding;
  view.cited = new Map();
  for (const fact of finding ? finding.facts : []) if (fact.operation >= 0) {
    if (!view.cited.has(fact.lane)) view.cited.set(fact.lane, new Set());
    view.cited.get(fact.lane).add(fact.operation);
  }
  if (finding) {
    const fact = finding.facts.find(f => f.r >= 0);
    if (fact && fact.domain !== view.domain) { view.domain = fact.domain; $("domain").value = view.domain; }
  }
  for (const button of $("findings").querySelectorAll("button")) {
    const current = finding !== null && button.dataset.id === finding.id;
    button.setAttribute("aria-current", current);
    if (current) button.scrollIntoView({ block: "nearest" });
  }
  document.body.dataset.finding = finding ? finding.id : "";
  showDetail();
  showLegend();
  layLanes();
  $("lanes-box").scrollTop = 0;
  const reach = finding && reachOf(finding);
  if (reach && travel) fly(...reach); else schedule();
  remember();
}

function matchesFinding(finding) {
  const query = view.query.trim().toLowerCase();
  if (!query) return true;
  const texts = [finding.rule, finding.client, finding.life, finding.summary, finding.id, ...finding.facts.flatMap(f => [f.says, f.revision, f.audit])];
  return texts.some(text => text && text.toLowerCase().includes(query));
}

const MATCHES = 20000;

function search(text) {
  view.query = text;
  if ($("query").value !== text) $("query").value = text;
  const query = text.trim().toLowerCase(), history = view.history;
  view.matches = null;
  view.match = -1;
  if (query) {
    const keys = new Set();
    history.raw.keys.forEach((key, at) => { if (key.toLowerCase().includes(query)) keys.add(at); });
    const words = new Set();
    history.raw.words.forEach((text, at) => { if (text.toLowerCase().includes(query)) words.add(at); });
    const offset = revisionOffset(query);
    const found = { lanes: new Set(), of: new Map(), list: [] };
    for (const lane of history.lanes) {
      const named = lane.label.toLowerCase().includes(query);
      const mine = new Set();
      const said = i => words.size > 0 && lane.w.length > 0 && words.has(lane.w[i]);
      for (let i = 0; i < lane.t.length; i++) if (named || said(i) || keys.has(lane.k[i]) || offset >= 0 && lane.r[i] === offset) {
        mine.add(i);
        if (found.list.length < MATCHES) found.list.push(lane.t[i]);
      }
      let events = 0;
      for (let i = 0; i < lane.et.length; i++) if (keys.has(lane.ek[i]) || offset >= 0 && lane.er[i] === offset) {
        events++;
        if (found.list.length < MATCHES) found.list.push(lane.et[i]);
      }
      if (named || mine.size || events) { found.lanes.add(lane.index); found.of.set(lane.index, mine); }
    }
    found.list.sort((a, b) => a - b);
    view.matches = found;
  }
  const count = view.matches ? view.matches.list.length : 0;
  $("matches").textContent = query ? (count >= MATCHES ? "over " : "") + count.toLocaleString("en") + (count === 1 ? " match" : " matches") : "";
  document.body.dataset.matches = query ? count : "";
  layLanes();
  showFindings();
  showDetail();
  showLegend();
  schedule();
}

function revisionOffset(query) {
  const domain = view.history.raw.domains[view.domain];
  if (!domain || !/^\d{1,39}$/.test(query)) return -1;
  const offset = BigInt(query) - BigInt(domain.base);
  return offset >= 0n && offset < 1n << 53n ? Number(offset) : -1;
}

function nextMatch() {
  const list = view.matches && view.matches.list;
  if (!list || !list.length) return;
  view.match = (view.match + 1) % list.length;
  const half = Math.min((view.t1 - view.t0) / 2, view.history.last / 20 + 1000);
  fly(list[view.match] - half, list[view.match] + half);
}

function stepFinding(by) {
  const shown = view.history.listed.map(entry => entry.finding).filter(matchesFinding);
  if (!shown.length) return;
  const at = shown.indexOf(view.finding);
  choose(shown[at < 0 ? (by > 0 ? 0 : shown.length - 1) : (at + by + shown.length) % shown.length]);
}

// The link: history, finding, interval of time and search.
let remembering = 0;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const parts = new URLSearchParams();
    if (view.index) parts.set("h", view.index);
    if (view.finding) parts.set("f", view.finding.id);
    if (view.query) parts.set("q", view.query);
    parts.set("t", Math.round(view.t0) + "," + Math.round(view.t1));
    try { history.replaceState(null, "", "#" + parts); } catch { location.hash = "#" + parts; }
  }, 120);
}

function reopen() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const index = Math.min(page.histories.length - 1, Math.max(0, Number(parts.get("h")) || 0));
  view.query = parts.get("q") || "";
  openHistory(index);
  $("history").value = index;
  const finding = view.history.raw.findings.find(f => f.id === parts.get("f"));
  choose(finding || null, false);
  const [t0, t1] = (parts.get("t") || "").split(",").map(Number);
  if (Number.isFinite(t0) && Number.isFinite(t1) && t1 > t0) look(t0, t1);
  else if (finding && reachOf(finding)) look(...reachOf(finding));
}

function drag(target) {
  let from = null;
  target.addEventListener("pointerdown", event => {
    from = { x: event.clientX, t0: view.t0, t1: view.t1, width: target.clientWidth };
    target.setPointerCapture(event.pointerId);
  });
  target.addEventListener("pointermove", event => {
    if (!from) return tip(target, event);
    flight++;
    const by = (event.clientX - from.x) / (from.width - GUTTER - RIGHT) * (from.t1 - from.t0);
    look(from.t0 - by, from.t1 - by);
  });
  const end = () => { if (from) { from = null; remember(); } };
  target.addEventListener("pointerup", end);
  target.addEventListener("pointercancel", end);
  target.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  target.addEventListener("wheel", event => {
    const zooms = event.ctrlKey || event.metaKey || target === chart.canvas;
    if (!zooms && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (zooms) zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.004), xToTime(event.offsetX, target.clientWidth));
    else move(event.deltaX / 900);
    remember();
  }, { passive: false });
}

function tip(target, event) {
  const box = $("tip"), stage = $("stage").getBoundingClientRect(), rect = target.getBoundingClientRect();
  const [x, y] = [event.clientX - rect.left, event.clientY - rect.top];
  let text = "";
  if (target === lanes.canvas) {
    const hit = below(x, y);
    text = hit ? describe(hit) : "";
  } else if (x > GUTTER) {
    const t = xToTime(x, chart.width), r = chartRange[0] + (chart.height - AXIS - 8 - y) / (chart.height - AXIS - 22) * (chartRange[1] - chartRange[0]);
    const revision = view.history.revision(view.domain, Math.max(0, r));
    text = t >= 0 ? view.history.time(t) + (revision ? "\nrevision " + revision : "") : "";
  }
  box.hidden = !text;
  box.textContent = text;
  const left = event.clientX - stage.left + 14;
  box.style.left = Math.min(left, stage.width - box.offsetWidth - 6) + "px";
  const top = event.clientY - stage.top + 14;
  box.style.top = (top + box.offsetHeight > stage.height ? top - box.offsetHeight - 24 : top) + "px";
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  readPalette();
  if (view.history) { showLegend(); schedule(); }
}

function onKey(event) {
  if (event.target === $("query")) {
    if (event.key === "Enter") nextMatch();
    if (event.key === "Escape") { search(""); $("query").blur(); remember(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open || event.target.tagName === "SELECT") return;
  const keys = {
    j: () => stepFinding(1), k: () => stepFinding(-1), "/": () => $("query").focus(), 0: whole,
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
    t: toggleTheme, "?": () => $("help").showModal(), Escape: () => { search(""); choose(null); },
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
  remember();
}

function whole() { fly(-view.history.last * 0.02, view.history.last * 1.02); }
function toggleTheme() { theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); }

function start() {
  page.prepared = [];
  theme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (!page.histories.length) {
    $("verdict").textContent = page.verdict;
    $("verdict").className = "verdict " + page.verdict;
    $("detail").append(element("p", "empty", "There was no evidence to check."));
    document.body.dataset.ready = "true";
    return;
  }
  const choice = $("history");
  choice.hidden = page.histories.length < 2;
  choice.replaceChildren(...page.histories.map((one, at) => { const o = element("option", "", one.name + ": " + one.verdict); o.value = at; return o; }));
  choice.addEventListener("change", () => { openHistory(Number(choice.value)); choose(null); });
  $("domain").addEventListener("change", () => { view.domain = Number($("domain").value); schedule(); });
  let typing = 0;
  $("query").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { search($("query").value); remember(); }, 120); });
  $("whole").addEventListener("click", whole);
  $("theme").addEventListener("click", toggleTheme);
  $("keys").addEventListener("click", () => $("help").showModal());
  $("lanes-box").addEventListener("scroll", schedule);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", reopen);
  new ResizeObserver(schedule).observe($("stage"));
  let before = null;
  window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; theme("light"); draw(); });
  window.addEventListener("afterprint", () => theme(before));
  drag(chart.canvas);
  drag(lanes.canvas);
  reopen();
  if (!location.hash && view.history.listed.length) choose(view.history.listed[0].finding, false), look(...(reachOf(view.finding) || [view.t0, view.t1]));
  draw();
  document.body.dataset.drawn = Math.round(performance.now());
  document.body.dataset.ready = "true";
}

start();
