// The view: interval of time, chosen finding, search, and the canvas.

const GUTTER = 172;
const RIGHT = 14;

const view = {
  history: null, domain: 0, finding: null, cited: new Map(), t0: 0, t1: 1, query: "", matches: null, match: -1,
};

function canvasOf(id) {
  const canvas = document.getElementById(id);
  const context = canvas.getContext("2d");
  return { canvas, context, width: 0, height: 0 };
}

// Fits a canvas to its box, in device pixels.
function fit(surface, width, height) {
  const scale = window.devicePixelRatio || 1;
  if (surface.width !== width || surface.height !== height || surface.scale !== scale) {
    Object.assign(surface, { width, height, scale });
    surface.canvas.width = Math.round(width * scale);
    surface.canvas.height = Math.round(height * scale);
    surface.canvas.style.width = width + "px";
    surface.canvas.style.height = height + "px";
  }
  surface.context.setTransform(scale, 0, 0, scale, 0, 0);
}

// Colours for the processes of a finding: distinct for colour-blind readers, and different from those of reads, writes and falls.
const HUES = ["hue0", "hue1", "hue2", "hue3", "hue4", "hue5"];

let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "raised", "line", "text", "quiet", "accent", "bad", "doubt", "good", "mark", "head", "read", "write", "watch", "event", "shade", ...HUES];
  palette = Object.fromEntries(names.map(name => [name, style.getPropertyValue("--" + name).trim()]));
}

function timeToX(t, width) { return GUTTER + (t - view.t0) / (view.t1 - view.t0) * (width - GUTTER - RIGHT); }
function xToTime(x, width) { return view.t0 + (x - GUTTER) / (width - GUTTER - RIGHT) * (view.t1 - view.t0); }

// Readable steps of an axis.
function step(span, count) {
  const rough = span / count;
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  for (const factor of [1, 2, 5, 10]) if (power * factor >= rough) return power * factor;
  return power * 10;
}

// Above a second, steps follow the sexagesimal units of time.
const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
function clockStep(span, count) {
  const second = 1e9 / Number(view.history.raw.unit), plain = step(span, count);
  if (plain < second || !view.history.raw.timed) return plain;
  return (CLOCK.find(seconds => seconds * second * count >= span) ?? 0) * second || plain;
}

function clampView(t0, t1) {
  const history = view.history;
  const margin = history.last * 0.02 + 1;
  let span = Math.min(Math.max(t1 - t0, 20), history.last + 2 * margin);
  let begin = Math.min(Math.max(t0, -margin), history.last + margin - span);
  return [begin, begin + span];
}

function look(t0, t1) {
  [view.t0, view.t1] = clampView(t0, t1);
  schedule();
}

// Animates the move in a few frames; moves at once if the reader prefers reduced motion.
let flight = 0;
function fly(t0, t1) {
  const [a0, a1] = [view.t0, view.t1];
  const [b0, b1] = clampView(t0, t1);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches || document.visibilityState !== "visible";
  const begin = performance.now();
  const mine = ++flight;
  const frame = now => {
    if (mine !== flight) return;
    const part = still ? 1 : Math.min(1, (now - begin) / 260);
    const eased = 1 - Math.pow(1 - part, 3);
    look(a0 + (b0 - a0) * eased, a1 + (b1 - a1) * eased);
    if (part < 1) requestAnimationFrame(frame); else remember();
  };
  requestAnimationFrame(frame);
}

function zoom(factor, centre) {
  flight++;
  const at = centre ?? (view.t0 + view.t1) / 2;
  look(at - (at - view.t0) * factor, at + (view.t1 - at) * factor);
}

function move(share) {
  flight++;
  const by = (view.t1 - view.t0) * share;
  look(view.t0 + by, view.t1 + by);
}

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; draw(); });
}

function draw() {
  const begin = performance.now();
  drawChart();
  drawLanes();
  document.body.dataset.frame = (performance.now() - begin).toFixed(2);
}

function clip(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

function drawNumber(context, x, y, number) {
  context.beginPath();
  context.arc(x, y, 9, 0, 2 * Math.PI);
  context.fillStyle = palette.accent;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = palette.ground;
  context.stroke();
  context.fillStyle = palette.ground;
  context.font = "700 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(number, x, y + 0.5);
  context.textAlign = "left";
}

function arrow(context, x0, y0, x1, y1) {
  const angle = Math.atan2(y1 - y0, x1 - x0);
  const [ax, ay] = [x0 + 11 * Math.cos(angle), y0 + 11 * Math.sin(angle)];
  const [bx, by] = [x1 - 12 * Math.cos(angle), y1 - 12 * Math.sin(angle)];
  if (Math.hypot(x1 - x0, y1 - y0) < 26) return;
  context.beginPath();
  context.moveTo(ax, ay);
  context.lineTo(bx, by);
  context.moveTo(bx - 7 * Math.cos(angle - 0.4), by - 7 * Math.sin(angle - 0.4));
  context.lineTo(bx, by);
  context.lineTo(bx - 7 * Math.cos(angle + 0.4), by - 7 * Math.sin(angle + 0.4));
  context.stroke();
}

// The axis of a log without times: numbers of events.
function orderTicks(every, width) {
  const ticks = [];
  for (let t = Math.max(0, Math.ceil(view.t0 / every) * every); t <= view.t1; t += every) ticks.push([timeToX(t, width), view.history.time(t)]);
  return ticks;
}

// Draws a time axis: ticks with their texts. Returns their positions.
function timeTicks(width) {
  const span = view.t1 - view.t0;
  const every = Math.max(clockStep(span, Math.max(2, (width - GUTTER) / 120)), 1);
  if (!view.history.raw.timed) return orderTicks(every, width);
  const unit = Number(view.history.raw.unit) * every;
  const digits = unit >= 1e9 ? 0 : unit >= 1e6 ? 3 : unit >= 1e3 ? 6 : 9;
  const ticks = [];
  // Round in clock time, not in the offset.
  const base = Number(BigInt(view.history.raw.base) / BigInt(view.history.raw.unit) % BigInt(Math.round(every)));
  for (let t = Math.ceil((view.t0 + base) / every) * every - base; t <= view.t1; t += every) {
    if (t > -1e-9) ticks.push([timeToX(t, width), view.history.time(Math.max(0, t), digits)]);
  }
  return ticks;
}
