// The main picture: revisions over time. The watermark never falls; a watcher's line that falls shows an older state.

const chart = canvasOf("chart");
const AXIS = 22;
let chartRange = [0, 1];

function revisionToY(r, height) { return height - AXIS - 8 - (r - chartRange[0]) / (chartRange[1] - chartRange[0]) * (height - AXIS - 22); }

// Lanes with a colour of their own, and the colour.
function accents() {
  const history = view.history, lanes = new Map();
  const add = lane => { if (lane >= 0 && !lanes.has(lane)) lanes.set(lane, palette[HUES[lanes.size % HUES.length]]); };
  if (view.finding) view.finding.facts.forEach(fact => add(fact.lane));
  else for (const finding of history.raw.findings) {
    if (finding.kind === "violation" && lanes.size < HUES.length) finding.facts.forEach(fact => { if (lanes.size < HUES.length) add(fact.lane); });
  }
  return lanes;
}

// Fits the range of revisions to the visible interval. With a finding chosen and magnified, to its facts and their surroundings,
// so that nothing else makes the finding small.
function fitRange() {
  const history = view.history;
  let low = Infinity, high = -Infinity, least = -Infinity, most = Infinity;
  const take = r => { if (r >= 0 && r >= least && r <= most) { low = Math.min(low, r); high = Math.max(high, r); } };
  const scan = points => {
    const count = points.length / 2;
    let first = firstPoint(points, view.t0), last = firstPoint(points, view.t1);
    if (first > 0) take(points[2 * first - 1]);
    const stride = Math.max(1, Math.floor((last - first) / 4000));
    for (let i = first; i < Math.min(last, count); i += stride) take(points[2 * i + 1]);
  };
  const domain = history.raw.domains[view.domain], mine = accents(), reach = view.finding && reachOf(view.finding);
  const close = reach && view.t1 - view.t0 <= 6 * (reach[1] - reach[0]);
  const facts = close ? view.finding.facts.filter(fact => fact.domain === view.domain && fact.r >= 0) : [];
  for (const fact of facts) if (fact.t >= view.t0 && fact.t <= view.t1) take(fact.r);
  if (low <= high) {
    const near = Math.max(high - low, 8) * 0.75;
    [least, most] = [low - near, high + near];
    // A distant revision without a time is drawn at the edge.
    for (const fact of facts) if (fact.t < 0) take(fact.r);
  }
  if (domain) scan(domain.head);
  for (const line of history.raw.lines) if (line.domain === view.domain && (!close || mine.has(line.lane))) scan(line.points);
  if (low > high) for (const fact of facts) take(fact.r);
  if (low > high) [low, high] = [0, 1];
  const room = Math.max((high - low) * 0.06, 0.6);
  chartRange = [low - room, high + room];
}

function firstPoint(points, time) {
  let low = 0, high = points.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[2 * middle] < time) low = middle + 1; else high = middle;
  }
  return low;
}

// A line without a known end lasts as long as its lane.
function endOf(line) { return line.end >= 0 ? line.end : Math.max(line.points[line.points.length - 2], view.history.lanes[line.lane].last); }

// Draws a stepped line. Points within one pixel become one stroke between their extremes. Returns where the line falls.
function drawSteps(points, end, colour, width, height, thickness) {
  const context = chart.context, count = points.length / 2;
  const falls = [];
  let i = Math.max(0, firstPoint(points, view.t0) - 1);
  if (i >= count) return falls;
  const right = chart.width - RIGHT;
  let x = Math.max(GUTTER, timeToX(points[2 * i], chart.width));
  let y = revisionToY(points[2 * i + 1], height);
  context.beginPath();
  context.moveTo(x, y);
  let before = points[2 * i + 1];
  for (i += 1; i < count; i++) {
    const t = points[2 * i], r = points[2 * i + 1];
    const nx = Math.min(right, Math.max(GUTTER, timeToX(t, chart.width)));
    if (t > view.t1) break;
    const ny = revisionToY(r, height);
    if (nx - x >= 0.7) { context.lineTo(nx, y); x = nx; }
    context.lineTo(x, ny);
    if (r < before) falls.push([nx, y, ny]);
    before = r;
    y = ny;
  }
  context.lineTo(Math.max(x, Math.min(right, timeToX(Math.min(view.t1, end), chart.width))), y);
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.stroke();
  return falls;
}

function drawMarks(context, width, height) {
  for (const mark of view.history.raw.marks) {
    const x = Math.max(GUTTER, timeToX(mark.t, width)), end = timeToX(mark.u, width);
    if (end < GUTTER || x > width) continue;
    context.fillStyle = palette.mark;
    context.fillRect(x, 0, Math.max(2, end - x), height);
    context.fillStyle = palette.quiet;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.fillText(clip(context, mark.name, Math.max(60, end - x - 6)), x + 4, 4);
  }
}

function drawChart() {
  const box = document.getElementById("chart-box");
  fit(chart, box.clientWidth, box.clientHeight);
  const { context, width, height } = chart, history = view.history;
  context.clearRect(0, 0, width, height);
  context.fillStyle = palette.ground;
  context.fillRect(0, 0, width, height);
  fitRange();
  drawMarks(context, width, height - AXIS);
  context.font = "11px system-ui, sans-serif";
  context.lineWidth = 1;
  const every = Math.max(1, step(chartRange[1] - chartRange[0], Math.max(2, height / 46)));
  const domain = history.raw.domains[view.domain];
  context.textBaseline = "middle";
  if (domain) {
    const base = Number(BigInt(domain.base) % BigInt(Math.round(every)));
    for (let r = Math.ceil((chartRange[0] + base) / every) * every - base; r <= chartRange[1]; r += every) {
      if (r < 0) continue;
      const y = Math.round(revisionToY(r, height)) + 0.5;
      context.strokeStyle = palette.line;
      context.beginPath();
      context.moveTo(GUTTER, y);
      context.lineTo(width - RIGHT, y);
      context.stroke();
      context.fillStyle = palette.quiet;
      context.textAlign = "right";
      context.fillText(history.revision(view.domain, r), GUTTER - 8, y);
      context.textAlign = "left";
    }
    context.fillStyle = palette.quiet;
    context.fillText("revision", 12, 14);
  } else {
    context.fillStyle = palette.quiet;
    context.fillText(history.raw.timed ? "time" : "order of the log", 12, height - AXIS / 2);
  }
  context.textAlign = "center";
  for (const [x, text] of timeTicks(width)) {
    if (x < GUTTER) continue;
    context.strokeStyle = palette.line;
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, 0);
    context.lineTo(Math.round(x) + 0.5, height - AXIS);
    context.stroke();
    context.fillStyle = palette.quiet;
    if (x < width - 40) context.fillText(text, x, height - AXIS / 2);
  }
  context.textAlign = "left";
  context.save();
  context.beginPath();
  context.rect(GUTTER - 1, 0, width - GUTTER - RIGHT + 2, height - AXIS);
  context.clip();
  const colours = accents();
  const dim = view.finding || colours.size ? 0.28 : 0.75;
  const falls = [];
  const mine = history.raw.lines.filter(line => line.domain === view.domain && line.points.length);
  for (const line of mine) if (!colours.has(line.lane)) {
    context.globalAlpha = dim;
    falls.push(...drawSteps(line.points, endOf(line), palette.watch, width, height, 1));
  }
  context.globalAlpha = 1;
  if (domain) drawSteps(domain.head, history.last, palette.head, width, height, 2.5);
  for (const line of mine) if (colours.has(line.lane)) falls.push(...drawSteps(line.points, endOf(line), colours.get(line.lane), width, height, 2));
  context.strokeStyle = palette.bad;
  context.lineWidth = 3;
  for (const [x, from, to] of falls.slice(0, 5000)) {
    context.beginPath();
    context.moveTo(x, from);
    context.lineTo(x, to);
    context.stroke();
  }
  drawFactsOnChart(context, width, height);
  context.restore();
  if (domain) drawViolations(context, width, height);
}

function edged(y, height) { return Math.min(Math.max(y, 12), height - AXIS - 11); }

// Marks violations at the bottom of the picture, since short ones vanish in a long recording.
function drawViolations(context, width, height) {
  let last = -Infinity;
  context.fillStyle = palette.bad;
  for (const t of view.history.violations) {
    const x = timeToX(t, width);
    if (x < GUTTER || x > width - RIGHT || x - last < 3) continue;
    last = x;
    context.beginPath();
    context.moveTo(x - 5, height - AXIS + 1);
    context.lineTo(x + 5, height - AXIS + 1);
    context.lineTo(x, height - AXIS - 8);
    context.fill();
  }
}

// Positions of a finding's facts, moved apart if they would overlap.
function spread(places) {
  const put = [];
  for (const place of places) {
    let { x, y } = place;
    while (put.some(other => Math.hypot(other.x - x, other.y - y) < 19)) x += 10, y = Math.max(12, y - 6);
    put.push({ ...place, x, y });
  }
  return put;
}

function drawFactsOnChart(context, width, height) {
  const finding = view.finding;
  if (!finding) return;
  const on = finding.facts.map((fact, index) => ({ fact, index })).filter(({ fact }) => fact.r >= 0 && fact.domain === view.domain);
  // A fact without a time has only a revision: it is drawn at the edge, with a line at its revision.
  const places = spread(on.map(({ fact, index }) => ({ index, x: fact.t < 0 ? GUTTER + 14 : timeToX(fact.t, width), y: edged(revisionToY(fact.r, height), height) })));
  context.strokeStyle = palette.accent;
  context.lineWidth = 1;
  context.setLineDash([1, 4]);
  for (const { fact } of on) if (fact.t < 0) {
    const y = edged(revisionToY(fact.r, height), height);
    context.beginPath();
    context.moveTo(GUTTER, y);
    context.lineTo(width - RIGHT, y);
    context.stroke();
  }
  context.setLineDash([]);
  drawEdges(context, finding, places);
  for (const { index, x, y } of places) drawNumber(context, x, y, index + 1);
}

function drawEdges(context, finding, places) {
  const place = index => places.find(p => p.index === index);
  context.strokeStyle = palette.accent;
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  for (const [from, to] of finding.edges) {
    const [a, b] = [place(from), place(to)];
    if (a && b) arrow(context, a.end === undefined ? a.x : Math.max(a.end, a.x) - 11, a.y, b.x, b.y);
  }
  context.setLineDash([]);
}
