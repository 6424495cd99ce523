// Prepares the data of the page: columns become typed arrays, and each name is looked up once.

const VERBS = ["GET", "LIST", "WATCH", "CREATE", "UPDATE", "PATCH", "DELETE", "DELETECOLLECTION", "OTHER"];
const WATCH = 2;
const CHANGES = { A: "put (it was absent)", M: "put", D: "deleted", B: "progress", R: "the watch ended" };
const EVENTS = { A: "ADDED", M: "MODIFIED", D: "DELETED", B: "BOOKMARK", E: "initial events end", R: "ERROR", U: "unidentified event" };

const page = JSON.parse(document.getElementById("data").textContent);

function isWrite(verb) { return verb >= 3 && verb <= 7; }

// One history: its numbers and their texts.
function prepare(raw) {
  const base = BigInt(raw.base);
  const unit = BigInt(raw.unit);
  const folder = sharedFolder(raw.files);
  // Audit files without a declared source are servers and clocks of their own, so these names are paths too.
  const short = text => folder ? text.split(folder).join("") : text;
  const history = { raw, short, lanes: raw.lanes.map((lane, index) => prepareLane(lane, index, short)), last: 1 };
  let last = history.lanes.reduce((high, lane) => Math.max(high, lane.last), 0);
  for (const line of raw.lines) if (line.points.length) last = Math.max(last, line.points[line.points.length - 2]);
  for (const finding of raw.findings) for (const fact of finding.facts) last = Math.max(last, fact.t);
  for (const domain of raw.domains) if (domain.head.length) last = Math.max(last, domain.head[domain.head.length - 2]);
  for (const finding of raw.findings) for (const fact of finding.facts) if (fact.operation >= 0) history.lanes[fact.lane].cited.add(fact.operation);
  const ends = raw.findings.filter(f => f.kind === "violation").map(f => Math.max(...f.facts.map(fact => fact.t), -1));
  history.violations = ends.filter(t => t >= 0).sort((a, b) => a - b);
  history.last = Math.max(1, last);
  history.files = raw.files.map(short);
  history.nanoseconds = t => base + BigInt(Math.round(t)) * unit;
  // Calls are few and labelled, so their bars are higher.
  history.row = raw.kind === "operations" ? 17 : 8;
  history.time = (t, digits = 6) => {
    if (!raw.timed) return "event " + (Math.round(t) + 1);
    const ns = history.nanoseconds(t);
    const second = ns / 1000000000n;
    const rest = (ns % 1000000000n).toString().padStart(9, "0").slice(0, digits);
    const text = new Date(Number(second) * 1000).toISOString().slice(11, 19);
    return digits ? text + "." + rest : text;
  };
  // Times since the begin of a recording have no date.
  history.dated = base >= 31536000000000000n;
  history.day = t => new Date(Number(history.nanoseconds(t) / 1000000n)).toISOString().slice(0, 10);
  history.revision = (domain, offset) => {
    const counter = raw.domains[domain];
    return counter && offset >= 0 ? (BigInt(counter.base) + BigInt(Math.round(offset))).toString() : "";
  };
  history.length = units => {
    if (!raw.timed) return Math.round(units) + (Math.round(units) === 1 ? " event" : " events");
    const ns = Number(unit) * units;
    if (ns < 1e3) return Math.round(ns) + " ns";
    if (ns < 1e6) return (ns / 1e3).toFixed(1) + " µs";
    if (ns < 1e9) return (ns / 1e6).toFixed(1) + " ms";
    if (ns < 12e10) return (ns / 1e9).toFixed(2) + " s";
    return (ns / 6e10).toFixed(1) + " min";
  };
  return history;
}

function prepareLane(raw, index, short) {
  const o = raw.operations, e = raw.events;
  const life = raw.life === raw.client ? "" : short(raw.life);
  const lane = {
    index, client: raw.client, name: raw.short, life,
    label: life ? raw.short + " · " + life : raw.short,
    t: Float64Array.from(o.t), u: Float64Array.from(o.u), r: Float64Array.from(o.r),
    v: Uint8Array.from(o.v), k: Int32Array.from(o.k), s: Uint16Array.from(o.s), f: o.f, l: o.l, w: o.w,
    cited: new Set(), et: Float64Array.from(e.t), er: Float64Array.from(e.r), ek: Int32Array.from(e.k), ey: e.y, ef: e.f, el: e.l,
  };
  lane.last = lane.et.length ? lane.et[lane.et.length - 1] : 0;
  for (let i = 0; i < lane.t.length; i++) lane.last = Math.max(lane.last, lane.t[i], lane.u[i]);
  pack(lane);
  return lane;
}

// Puts overlapping operations of a lane into rows, with watches, which are long, below the others.
function pack(lane) {
  const LIMIT = 6;
  const rows = new Uint8Array(lane.t.length);
  const ends = [], watches = [];
  for (let i = 0; i < lane.t.length; i++) {
    const open = lane.v[i] === WATCH ? watches : ends;
    const end = lane.u[i] < 0 ? Infinity : lane.u[i];
    let row = open.findIndex(last => last <= lane.t[i]);
    if (row < 0) row = open.length < LIMIT ? open.length : LIMIT - 1;
    open[row] = Math.max(open[row] ?? 0, end === Infinity && lane.v[i] !== WATCH ? lane.t[i] : end);
    rows[i] = row;
  }
  // A bar without an end fades out before the next one in its row.
  lane.until = new Map();
  const next = [];
  for (let i = lane.t.length - 1; i >= 0; i--) {
    if (lane.v[i] === WATCH) continue;
    if (lane.u[i] < 0) lane.until.set(i, next[rows[i]] ?? Infinity);
    next[rows[i]] = lane.t[i];
  }
  lane.plain = Math.max(1, ends.length);
  lane.watches = watches.length;
  for (let i = 0; i < rows.length; i++) if (lane.v[i] === WATCH) rows[i] += lane.plain;
  lane.rows = rows;
  // The longest operation of each kind of row bounds how far back drawing must look.
  lane.longest = 0;
  lane.long = [];
  for (let i = 0; i < lane.t.length; i++) {
    const length = lane.u[i] < 0 ? Infinity : lane.u[i] - lane.t[i];
    if (length > 5e9 || lane.v[i] === WATCH || length === Infinity) lane.long.push(i);
    else lane.longest = Math.max(lane.longest, length);
  }
}

// The common folders of all paths, with a slash.
function sharedFolder(paths) {
  const folders = paths.map(path => path.split("/").slice(0, -1));
  let shared = 0;
  while (folders.length && folders.every(parts => parts.length > shared && parts[shared] === folders[0][shared])) shared++;
  const folder = shared ? folders[0].slice(0, shared).join("/") + "/" : "";
  return folder.length > 1 ? folder : "";
}

// The first index in a sorted column whose value is not lower.
function lowerBound(column, value) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
