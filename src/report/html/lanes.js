// One lane per incarnation: operations as bars from request to answer, watch events as ticks. Only visible ones are drawn.

const lanes = canvasOf("lanes");
const TICKS = 9;
const PAD = 8;
// Length of a bar without an end.
const FADE = 120;
let places = [];

function laneHeight(lane) {
  return Math.max(lane.life ? 32 : 24, (lane.plain + lane.watches) * view.history.row + (lane.et.length ? TICKS : 0) + PAD);
}

// Selects and orders lanes: those with content, first the ones of the chosen finding in the order of its facts. A search keeps
// the lanes that match.
function layLanes() {
  const history = view.history;
  const first = [...new Set(view.finding ? view.finding.facts.map(fact => fact.lane).filter(lane => lane >= 0) : [])];
  const rest = history.lanes.filter(lane => !first.includes(lane.index) && (view.matches ? view.matches.lanes.has(lane.index) : lane.t.length || lane.et.length));
  places = [];
  let top = 4;
  for (const lane of [...first.map(index => history.lanes[index]), ...rest]) {
    // A gap between the lanes of the finding and the others.
    if (first.length && lane === rest[0]) top += 10;
    const height = laneHeight(lane);
    places.push({ lane, top, height });
    top += height;
  }
  document.getElementById("lanes-space").style.height = top + 8 + "px";
}

function placeOf(index) { return places.find(place => place.lane.index === index); }

function colourOf(lane, i) { return lane.v[i] === WATCH ? palette.watch : isWrite(lane.v[i]) ? palette.write : palette.read; }

function drawLanes() {
  const box = document.getElementById("lanes-box");
  fit(lanes, box.clientWidth, box.clientHeight);
  const { context, width, height } = lanes, scroll = box.scrollTop;
  context.clearRect(0, 0, width, height);
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, height);
  drawMarks(context, width, height);
  const involved = new Set(view.finding ? view.finding.facts.map(fact => fact.lane) : []);
  const colours = accents();
  for (const place of places) {
    const y = place.top - scroll;
    if (y + place.height < 0 || y > height) continue;
    drawLane(context, place.lane, y, place.height, width, involved.size > 0 && !involved.has(place.lane.index), colours.get(place.lane.index));
  }
  drawFactsOnLanes(context, width, height, scroll);
}

function drawLane(context, lane, y, height, width, dim, colour) {
  context.strokeStyle = palette.line;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, Math.round(y) - 0.5);
  context.lineTo(width, Math.round(y) - 0.5);
  context.stroke();
  context.globalAlpha = dim ? 0.4 : 1;
  context.save();
  context.beginPath();
  context.rect(GUTTER, y, width - GUTTER - RIGHT, height);
  context.clip();
  const found = view.matches ? view.matches.of.get(lane.index) : null;
  const faded = new Float64Array(lane.plain + lane.watches + 1).fill(-1);
  for (const i of lane.long) {
    if (lane.t[i] > view.t1 || lane.u[i] >= 0 && lane.u[i] < view.t0) continue;
    if (lane.u[i] < 0 && !found) {
      const x = timeToX(lane.t[i], width);
      if (x < GUTTER - FADE || x < faded[lane.rows[i]] + 1) continue;
      faded[lane.rows[i]] = x;
    }
    drawBar(context, lane, i, y, width, found);
  }
  const last = new Float64Array(lane.plain + lane.watches + 1).fill(-1);
  const quick = view.history.lanes.length && !found;
  for (let i = lowerBound(lane.t, view.t0 - lane.longest); i < lane.t.length && lane.t[i] <= view.t1; i++) {
    if (lane.v[i] === WATCH || lane.u[i] < 0) continue;
    const end = timeToX(lane.u[i], width);
    // Skips bars that end within a pixel that is already filled.
    if (quick && end <= last[lane.rows[i]] && !lane.cited.has(i)) continue;
    drawBar(context, lane, i, y, width, found);
    last[lane.rows[i]] = Math.ceil(Math.max(end, timeToX(lane.t[i], width) + 1.5));
  }
  drawTicks(context, lane, y + height - TICKS - 2, width, found);
  context.restore();
  context.globalAlpha = dim ? 0.55 : 1;
  context.fillStyle = palette.text;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "top";
  if (colour) {
    context.fillStyle = colour;
    context.fillRect(0, y + 2, 4, height - 4);
  }
  const two = lane.life && height >= 30;
  context.fillStyle = palette.text;
  context.fillText(clip(context, two ? lane.name : lane.label, GUTTER - 20), 10, y + 5);
  if (two) {
    context.fillStyle = palette.quiet;
    context.font = "11px system-ui, sans-serif";
    context.fillText(clip(context, lane.life, GUTTER - 20), 10, y + 19);
  }
  context.globalAlpha = 1;
}

function drawBar(context, lane, i, y, width, found) {
  const x = timeToX(lane.t[i], width);
  const open = lane.u[i] < 0;
  const end = open ? width : timeToX(lane.u[i], width);
  const row = view.history.row, top = y + 4 + lane.rows[i] * row;
  const alpha = context.globalAlpha;
  const cited = view.finding && view.cited.get(lane.index), aside = view.history.raw.kind === "operations" && view.finding && !(cited && cited.has(i));
  if (found && !found.has(i)) context.globalAlpha = alpha * 0.2;
  else if (aside) context.globalAlpha = alpha * 0.4;
  const colour = colourOf(lane, i);
  const thick = lane.v[i] === WATCH ? 2 : row - 2;
  const from = Math.max(GUTTER - 2, x), size = Math.max(1.5, Math.min(end, width) - from);
  context.fillStyle = colour;
  if (open) {
    // The end is unknown, so the bar fades out to the right in steps.
    const room = Math.max(4, Math.min(FADE, timeToX(Math.min(lane.until.get(i) ?? Infinity, view.t1 * 2 + 1), width) - x - 1));
    const shown = context.globalAlpha;
    for (let part = 0; part < 8; part++) {
      context.globalAlpha = shown * 0.75 * (1 - part / 8);
      context.fillRect(x + room * part / 8, top, room / 8, thick);
    }
    context.globalAlpha = shown;
  } else if (lane.s[i] >= 400) {
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.strokeRect(from + 0.5, top + 0.5, Math.max(2, size - 1), thick - 1);
  } else {
    context.fillRect(from, top + (lane.v[i] === WATCH ? 2 : 0), size, thick);
  }
  if (row > 12 && size > 26) drawWords(context, lane, i, from, top + thick / 2, open ? FADE : size);
  if (cited && cited.has(i) && lane.v[i] !== WATCH && x > GUTTER - 5) {
    context.strokeStyle = palette.text;
    context.lineWidth = 1.5;
    context.strokeRect(from - 1.5, top - 1.5, Math.max(4, open ? 14 : size + 3), thick + 3);
  }
  context.globalAlpha = alpha;
}

// The text of a call in its bar, with the answer after an arrow.
function drawWords(context, lane, i, x, y, room) {
  const [, asked, told] = /^`(.*)` (.*)$/s.exec(view.history.raw.words[lane.w[i]]) || [];
  if (!asked) return;
  const answer = /^answered (.*)$/s.exec(told), key = lane.k[i] >= 0 ? " " + view.history.raw.keys[lane.k[i]] : "";
  const text = asked + key + (answer ? " → " + answer[1] : lane.s[i] === 0 ? " ?" : lane.s[i] >= 400 ? (told === "failed" ? " failed" : " no") : "");
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = lane.s[i] >= 400 || lane.s[i] === 0 ? palette.text : palette.ground;
  context.fillText(clip(context, text, room - 8), x + 4, y + 0.5);
}

function drawTicks(context, lane, y, width, found) {
  if (!lane.et.length || found && !found.size) return;
  let last = -1;
  for (let i = lowerBound(lane.et, view.t0); i < lane.et.length && lane.et[i] <= view.t1; i++) {
    const x = Math.round(timeToX(lane.et[i], width));
    const kind = lane.ey[i];
    if (x === last && kind !== "R" && kind !== "D") continue;
    last = x;
    context.fillStyle = kind === "R" ? palette.bad : kind === "D" ? palette.write : kind === "B" || kind === "E" ? palette.quiet : palette.event;
    context.fillRect(x, y, 1.2, kind === "B" ? 5 : TICKS - 1);
  }
}

function drawFactsOnLanes(context, width, height, scroll) {
  const finding = view.finding;
  if (!finding) return;
  const on = [], calls = view.history.raw.kind === "operations";
  finding.facts.forEach((fact, index) => {
    const place = fact.t >= 0 && placeOf(fact.lane);
    if (!place) return;
    const y = place.top - scroll, { lane } = place;
    if (!calls || fact.operation < 0) return on.push({ index, x: timeToX(fact.t, width), y: y + Math.min(place.height / 2, 20) });
    // Edges leave a call at its end and reach it at its begin.
    const i = fact.operation, begin = timeToX(lane.t[i], width), end = lane.u[i] < 0 ? begin + 14 : timeToX(lane.u[i], width);
    on.push({ index, x: begin - 10, y: y + 4 + (lane.rows[i] + 0.5) * view.history.row - 1, end });
  });
  const put = spread(on).filter(place => (place.end ?? place.x) > GUTTER - 5 && place.x < width);
  drawEdges(context, finding, put);
  for (const { index, x, y } of put) drawNumber(context, x, y, index + 1);
}

// The operation or event at a point, if any.
function below(x, y) {
  const box = document.getElementById("lanes-box");
  const at = y + box.scrollTop;
  const place = places.find(p => at >= p.top && at < p.top + p.height);
  if (!place) return null;
  const lane = place.lane, width = lanes.width;
  if (x < GUTTER) return { lane };
  const inside = at - place.top;
  const near = (view.t1 - view.t0) / (width - GUTTER) * 4;
  const time = xToTime(x, width);
  if (lane.et.length && inside > place.height - TICKS - 4) {
    let i = lowerBound(lane.et, time - near), best = -1;
    for (; i < lane.et.length && lane.et[i] <= time + near; i++) if (best < 0 || Math.abs(lane.et[i] - time) < Math.abs(lane.et[best] - time)) best = i;
    if (best >= 0) return { lane, event: best };
  }
  const row = Math.floor((inside - 4) / view.history.row);
  const hit = i => lane.rows[i] === row && lane.t[i] - near <= time && (lane.u[i] < 0 || lane.u[i] + near >= time);
  for (let i = lowerBound(lane.t, time + near) - 1; i >= 0 && lane.t[i] >= time - lane.longest - near; i--) if (hit(i)) return { lane, operation: i };
  for (const i of lane.long) if (hit(i)) return { lane, operation: i };
  return { lane };
}

function describe(hit) {
  const history = view.history, { lane } = hit;
  const key = k => k >= 0 ? " " + history.raw.keys[k] : "";
  const revision = r => r >= 0 ? "revision " + history.revision(view.domain, r) : "";
  const place = (f, l) => history.files[f] + ":" + l;
  if (hit.event !== undefined) {
    const i = hit.event;
    const kind = (history.raw.kind === "etcd" ? CHANGES : EVENTS)[lane.ey[i]];
    return [kind + key(lane.ek[i]), revision(lane.er[i]), history.time(lane.et[i]), lane.label, place(lane.ef[i], lane.el[i])].filter(Boolean).join("\n");
  }
  if (hit.operation !== undefined) {
    const i = hit.operation;
    const from = lane.u[i] < 0 ? "from " + history.time(lane.t[i]) : history.time(lane.t[i]) + ", " + history.length(lane.u[i] - lane.t[i]);
    const status = lane.w.length ? ["answered", "refused", "outcome unknown"][lane.s[i] === 0 ? 2 : lane.s[i] >= 400 ? 1 : 0]
      : lane.s[i] ? "answered " + lane.s[i] : "no answer known";
    const told = (history.raw.kind === "operations" || lane.v[i] === WATCH && lane.w.length ? "" : status) + (lane.r[i] >= 0 ? ", " + revision(lane.r[i]) : "");
    const what = lane.w.length ? history.raw.words[lane.w[i]] + (history.raw.kind === "etcd" ? "" : key(lane.k[i])) : VERBS[lane.v[i]] + key(lane.k[i]);
    return [what, told, from, lane.label, place(lane.f[i], lane.l[i])].filter(Boolean).join("\n");
  }
  return lane.client + (lane.life ? "\n" + lane.life : "");
}
