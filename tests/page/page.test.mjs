// The page in a real browser: `node --test tests/page` after `npm install` there. The binary is the one that `cargo test` builds.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { busy, SOURCES } from "./busy.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const binary = join(target, "debug", "retrograde");
const folder = mkdtempSync(join(tmpdir(), "retrograde-page-"));
let browser;

before(async () => {
  execFileSync("cargo", ["test", "--locked", "--quiet", "--no-run", "--test", "integration"], { cwd: root, stdio: "inherit" });
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
});
after(() => browser?.close());

// Checks evidence and opens its page; errors of the page end up in the list.
async function open(evidence, { hash = "", sources = [], ...options } = {}) {
  const file = join(folder, evidence.replaceAll(/\W+/g, "-") + ".html");
  const run = spawnSync(binary, ["check", ...sources, "--report", "html=" + file, evidence], { cwd: root });
  assert.ok([0, 1, 3].includes(run.status), String(run.stderr));
  const page = await browser.newPage({ viewport: { width: 1400, height: 850 }, ...options });
  page.errors = [];
  page.file = file;
  page.on("console", message => ["error", "warning"].includes(message.type()) && page.errors.push(message.text()));
  page.on("pageerror", error => page.errors.push(String(error)));
  page.on("request", request => request.url().startsWith("file:") || page.errors.push("asks for " + request.url()));
  page.on("dialog", dialog => { page.errors.push("a dialog: " + dialog.message()); dialog.dismiss(); });
  await page.goto("file://" + file + hash);
  await page.waitForSelector("body[data-ready=true]");
  return page;
}

const span = async page => {
  await page.waitForTimeout(500);
  const [from, to] = new URLSearchParams(new URL(page.url()).hash.slice(1)).get("t").split(",").map(Number);
  return { from, to, width: to - from };
};
// Whether a canvas shows a colour, above its foot of so many pixels: some pixel near to it.
const shows = (page, id, [r, g, b], foot = 0) => page.evaluate(([id, r, g, b, foot]) => {
  const canvas = document.getElementById(id);
  // Read from a copy: the browser complains about a canvas that is drawn and read by turns.
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, copy.width, copy.height - foot);
  for (let i = 0; i < data.length; i += 4) if (Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 12) return true;
  return false;
}, [id, r, g, b, foot]);

const INCIDENT = "histories/incidents/reflector-resume/buggy";

test("the first finding is chosen, with its facts, and nothing complains", async () => {
  const page = await open(INCIDENT);
  assert.equal(await page.textContent("#verdict"), "violated");
  assert.ok(await page.locator("#findings button").count() >= 2);
  assert.ok(await page.locator("#detail li.fact").count() >= 2);
  assert.ok((await page.locator("#detail pre").first().textContent()).includes("resourceVersion"));
  assert.deepEqual(page.errors, []);
});

test("a watcher that went back is drawn as a fall in the colour of violations", async () => {
  const page = await open(INCIDENT);
  await page.locator("#findings button", { hasText: "monotonic-reads" }).first().click();
  await page.keyboard.press("0");
  await page.waitForTimeout(500);
  // At the foot are marks of violations, in the same colour; the fixed client still meets one of the server's.
  const FOOT = 34;
  assert.ok(await shows(page, "chart", [0xb3, 0x26, 0x1e], FOOT));
  const fixed = await open("histories/incidents/reflector-resume/client-keeps-the-highest");
  assert.ok(!await shows(fixed, "chart", [0xb3, 0x26, 0x1e], FOOT));
  assert.ok(await shows(fixed, "chart", [0xb3, 0x26, 0x1e]));
  assert.deepEqual([...page.errors, ...fixed.errors], []);
});

test("choosing a finding by mouse and by key zooms to it and shows it", async () => {
  const page = await open("histories/incidents/kubelet-restart/buggy");
  const buttons = page.locator("#findings button");
  const last = buttons.nth(await buttons.count() - 1);
  await last.click();
  assert.equal(await page.getAttribute("body", "data-finding"), await last.getAttribute("data-id"));
  assert.equal(await last.getAttribute("aria-current"), "true");
  const near = await span(page);
  await page.keyboard.press("0");
  const whole = await span(page);
  assert.ok(whole.width > near.width);
  await page.keyboard.press("j");
  assert.equal(await page.getAttribute("body", "data-finding"), await buttons.first().getAttribute("data-id"));
  await page.keyboard.press("Escape");
  assert.equal(await page.getAttribute("body", "data-finding"), "");
  assert.ok((await page.textContent("#detail")).includes("verdict: violated"));
  assert.deepEqual(page.errors, []);
});

test("wheel and drag zoom and move in time", async () => {
  const page = await open(INCIDENT);
  await page.keyboard.press("0");
  const whole = await span(page);
  const box = await page.locator("#chart").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -60);
  const near = await span(page);
  assert.ok(near.width < whole.width / 2, `${near.width} of ${whole.width}`);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 150, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  const moved = await span(page);
  assert.ok(moved.from < near.from && Math.abs(moved.width - near.width) <= 2);
  assert.deepEqual(page.errors, []);
});

test("search finds keys, clients and revisions and leaves their lanes", async () => {
  const page = await open(INCIDENT);
  for (const text of ["endpoint", "services", "35"]) {
    await page.fill("#query", text);
    await page.waitForFunction(() => Number(document.body.dataset.matches) > 0);
  }
  await page.press("#query", "Enter");
  await page.fill("#query", "nothing is called this");
  await page.waitForFunction(() => document.body.dataset.matches === "0");
  assert.ok((await page.textContent("#findings")).includes("No finding matches"));
  await page.press("#query", "Escape");
  assert.ok(await page.locator("#findings button").count() >= 2);
  assert.deepEqual(page.errors, []);
});

test("the link reopens the same view", async () => {
  const page = await open(INCIDENT);
  await page.locator("#findings button").nth(1).click();
  await page.waitForTimeout(600);
  await page.keyboard.press("+");
  const seen = await span(page);
  const again = await open(INCIDENT, { hash: new URL(page.url()).hash });
  assert.equal(await again.getAttribute("body", "data-finding"), await page.getAttribute("body", "data-finding"));
  await again.keyboard.press("t");
  await again.keyboard.press("t");
  assert.deepEqual(await span(again), seen);
  assert.deepEqual([...page.errors, ...again.errors], []);
});

test("names from the evidence are text and nothing else", async () => {
  const hostile = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\u202egnp.exe", "]]>&amp;\u0000\u001b[31m", "n".repeat(10_000)];
  const lines = [];
  for (const [at, name] of hostile.entries()) {
    const time = second => `2026-11-20T10:00:${String(10 * at + second).padStart(2, "0")}Z`;
    lines.push({ kind: "capture", version: 1, client: name, incarnation: name, server: name, clock: "lab" });
    const object = revision => ({ apiVersion: "v1", kind: "Pod", metadata: { namespace: name, name, uid: name, resourceVersion: String(revision) } });
    const list = revision => ({ apiVersion: "v1", kind: "PodList", metadata: { resourceVersion: String(revision) }, items: [object(revision)] });
    for (const [id, revision, second] of [[1, 50, 1], [2, 40, 3]]) {
      lines.push({ kind: "request", id: 10 * at + id, at: time(second), method: "GET", uri: "/api/v1/pods?resourceVersion=0" });
      lines.push({ kind: "response", id: 10 * at + id, at: time(second + 1), status: 200, body: list(revision) });
    }
  }
  const file = join(folder, "hostile.jsonl");
  writeFileSync(file, lines.map(line => JSON.stringify(line)).join("\n") + "\n");
  for (const colorScheme of ["light", "dark"]) {
    const page = await open(file, { colorScheme });
    assert.ok(await page.locator("#findings button").count() >= 5);
    for (const button of await page.locator("#findings button").all()) await button.click();
    await page.fill("#query", "<img");
    await page.waitForFunction(() => document.body.dataset.matches !== "");
    const box = await page.locator("#lanes").boundingBox();
    await page.mouse.move(box.x + 40, box.y + 15);
    await page.waitForTimeout(150);
    assert.equal(await page.locator("img, iframe, object, embed, link").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
    assert.ok(wide, "the page is wider than the window");
    assert.deepEqual(page.errors, []);
  }
});

test("evidence without an operation is a page too", async () => {
  const file = join(folder, "nothing.jsonl");
  writeFileSync(file, '{"kind":"capture","version":1}\n');
  const page = await open(file);
  assert.equal(await page.textContent("#verdict"), "unknown");
  assert.deepEqual(page.errors, []);
});

test("the page asks nobody for anything, and prints", async () => {
  const page = await open(INCIDENT);
  const text = readFileSync(page.file, "utf8");
  assert.ok(!/(src|href)=["']?https?:/.test(text));
  const pdf = await page.pdf();
  assert.ok(pdf.length > 10_000);
  assert.deepEqual(page.errors, []);
});

test("the calls of an operation log are lanes, found by their words, and no empty picture of revisions stands above them", async () => {
  const page = await open("histories/rules/linearizability/violation.edn");
  assert.equal(await page.textContent("#verdict"), "violated");
  assert.equal(await page.getAttribute("body", "data-revisions"), "none");
  const box = await page.locator("#chart-box").boundingBox();
  assert.ok(box.height < 80, `${box.height}`);
  assert.ok(await page.locator("#detail li.fact").count() >= 2);
  await page.fill("#query", "read");
  await page.waitForTimeout(300);
  assert.ok(Number(await page.getAttribute("body", "data-matches")) > 0);
  assert.deepEqual(page.errors, []);
});

test("evidence without clients and times has no picture, and says so", async () => {
  const page = await open("histories/rules/split-timeline/violation-store-of-another-content-than-its-log.report");
  assert.equal(await page.textContent("#verdict"), "violated");
  assert.match(await page.textContent("#legend"), /there is no picture/);
  assert.equal(await page.isVisible("#chart-box") || await page.isVisible("#lanes-box"), false);
  assert.equal(await page.locator("#detail li.fact").count(), 2);
  assert.deepEqual(page.errors, []);
});

const data = page => page.evaluate(() => JSON.parse(document.getElementById("data").textContent).histories[0]);

test("a report of etcd has its clients' requests, their watches and the revisions that each had reached", async () => {
  const page = await open("histories/rules/watch-gap/violation.report");
  assert.equal(await page.textContent("#verdict"), "violated");
  assert.equal(await page.getAttribute("body", "data-revisions"), "some");
  const drawn = await data(page);
  const sum = count => drawn.lanes.reduce((n, lane) => n + count(lane), 0);
  assert.ok(sum(lane => lane.operations.t.length) >= 3 && sum(lane => lane.events.t.length) >= 1, JSON.stringify(drawn.lanes));
  assert.ok(drawn.words.some(words => words.startsWith("put ")) && drawn.words.some(words => words.startsWith("watch ")), String(drawn.words));
  assert.ok(drawn.domains[0].head.length >= 4 && drawn.lines.length >= 2);
  assert.ok(drawn.findings[0].facts.some(fact => fact.lane >= 0 && fact.t >= 0));
  const box = await page.locator("#lanes").boundingBox();
  assert.ok(box.height > 100);
  assert.ok(await shows(page, "lanes", [0xc2, 0x56, 0x0a]), "no write is drawn");
  // A client that was told less than before fell; the fixed twin did not.
  for (const [report, falls] of [["violation", true], ["fixed", false]]) {
    const other = await open(`histories/rules/stale-consistent-read/${report}.report`);
    const fell = (await data(other)).lines.some(({ points }) => points.some((r, at) => at % 2 && at > 2 && r < points[at - 2]));
    assert.equal(fell, falls, report);
    assert.deepEqual(other.errors, []);
  }
  assert.deepEqual(page.errors, []);
});

test("the calls of a log without times stand in its order, and a core is drawn with what came before what", async () => {
  const file = join(folder, "untimed.log");
  const calls = ["0 :invoke :write 1", "0 :ok :write 1", "1 :invoke :write 2", "1 :ok :write 2", "2 :invoke :read nil", "2 :ok :read 1", "3 :invoke :write 3"];
  writeFileSync(file, calls.map(call => "INFO  jepsen.util - " + call.replaceAll(" ", "\t") + "\n").join(""));
  const page = await open(file);
  assert.equal(await page.textContent("#verdict"), "violated");
  const drawn = await data(page);
  assert.equal(drawn.timed, false);
  assert.deepEqual(drawn.lanes.map(lane => [lane.operations.t, lane.operations.u]), [[[0], [1]], [[2], [3]], [[4], [5]], [[6], [-1]]]);
  const core = drawn.findings[0];
  assert.ok(core.facts.every(fact => fact.operation === 0), JSON.stringify(core.facts));
  assert.ok(core.edges.length >= 1 && core.edges.every(([from, to]) => core.facts[from].t < core.facts[to].t));
  assert.ok((await page.textContent("#reach")).includes("events"));
  assert.deepEqual(page.errors, []);
});

test("an incident among 20,000 operations of others stands out, and all of them are drawn", async () => {
  const folderOf = join(folder, "busy"), operations = 20_000;
  busy(folderOf, join(root, "histories/incidents/kubelet-restart/buggy"), operations);
  const page = await open(folderOf, { sources: SOURCES });
  const drawn = await data(page);
  const expected = JSON.parse(readFileSync(join(root, "histories/incidents/kubelet-restart/buggy/expected.json"))).findings;
  assert.deepEqual(drawn.findings.map(finding => finding.kind + " " + finding.rule).sort(), expected.map(text => text.split(" by ")[0]).sort());
  assert.ok(drawn.lanes.reduce((n, lane) => n + lane.operations.t.length, 0) >= operations);
  assert.deepEqual(drawn.omitted, [0, 0]);
  assert.ok(readFileSync(page.file).length < operations * 100, "the page is large");
  // The lanes of the finding stand together at the top, and no watcher's line is above the head.
  const head = drawn.domains[0].head, at = time => { let r = -1; for (let i = 0; i < head.length && head[i] <= time; i += 2) r = head[i + 1]; return r; };
  for (const { points } of drawn.lines) for (let i = 0; i < points.length; i += Math.max(2, points.length >> 3 << 1)) assert.ok(points[i + 1] <= at(points[i]));
  assert.ok(await shows(page, "lanes", [0xc2, 0x56, 0x0a]));
  await page.keyboard.press("0");
  assert.ok((await span(page)).width > 3.5e12);
  assert.deepEqual(page.errors, []);
});

test("what a recorder marked is a band with its name", async () => {
  const file = join(folder, "marked.jsonl");
  const line = value => JSON.stringify(value) + "\n";
  const pod = { kind: "Pod", apiVersion: "v1", metadata: { name: "a", namespace: "d", uid: "u1", resourceVersion: "7" } };
  writeFileSync(file, line({ kind: "capture", version: 1, client: "c", clock: "lab" })
    + line({ kind: "request", id: 1, at: 1772442000000000000, method: "GET", uri: "/api/v1/namespaces/d/pods/a" })
    + line({ kind: "response", id: 1, at: 1772442001000000000, status: 200, body: pod })
    + line({ kind: "mark", at: "2026-03-02T09:00:00.2Z", until: "2026-03-02T09:00:00.6Z", name: "server b paused" }));
  const page = await open(file);
  const marks = await page.evaluate(() => JSON.parse(document.querySelector("script[type='application/json']").textContent).histories[0].marks);
  assert.deepEqual(marks.map(mark => mark.name), ["server b paused"]);
  assert.ok(marks[0].u > marks[0].t);
  assert.deepEqual(page.errors, []);
});
