// How fast a page of a large recording is: `node tests/page/measure.mjs [OPERATIONS] [BINARY]` after `npm install` there.
// First paint and the first whole picture since the page was asked for, and the frames while the picture is dragged.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { busy, SOURCES } from "./busy.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const operations = Number(process.argv[2] ?? 100_000);
const built = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release", "retrograde");
const binary = process.argv[3] ?? built;
if (!process.argv[3]) execFileSync("cargo", ["build", "--release", "--locked", "--quiet"], { cwd: root, stdio: "inherit" });
const folder = mkdtempSync(join(tmpdir(), "retrograde-measure-"));
const median = numbers => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  for (const incident of ["kubelet-restart", "reflector-resume", "ip-reconciler"]) {
    const evidence = join(folder, incident), file = evidence + ".html";
    busy(evidence, join(root, "histories/incidents", incident, "buggy"), operations);
    const run = spawnSync(binary, ["check", ...SOURCES, "--report", "html=" + file, evidence]);
    if (run.status !== 1) throw new Error(`${incident}: exit ${run.status}\n${run.stderr}`);
    const paints = [], pictures = [], frames = [], draws = [];
    for (let round = 0; round < 5; round++) {
      const page = await browser.newPage({ viewport: { width: 1500, height: 900 } });
      await page.goto("file://" + file);
      await page.waitForSelector("body[data-ready=true]");
      paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
      pictures.push(Number(await page.getAttribute("body", "data-drawn")));
      await page.keyboard.press("0");
      await page.waitForTimeout(500);
      // Half the recording, moved to and fro: everything that is dense is on the screen.
      const measured = await page.evaluate(async () => {
        document.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
        const canvas = document.getElementById("chart"), box = canvas.getBoundingClientRect(), out = [];
        canvas.setPointerCapture = () => {};
        const at = x => canvas.dispatchEvent(new PointerEvent(x === undefined ? "pointerup" : out.length ? "pointermove" : "pointerdown", { clientX: box.left + (x ?? 0), clientY: box.top + 100, pointerId: 1, bubbles: true }));
        const frame = () => new Promise(done => requestAnimationFrame(done));
        at(700);
        let last = await frame();
        for (let n = 0; n < 90; n++) {
          out.push([0, 0]);
          at(700 + (n % 30 < 15 ? n % 15 : 15 - n % 15) * 8);
          const now = await frame();
          out[n] = [now - last, Number(document.body.dataset.frame)];
          last = now;
        }
        at();
        return out;
      });
      frames.push(...measured.map(([time]) => time));
      draws.push(...measured.map(([, time]) => time));
      await page.close();
    }
    console.log(`${incident}, ${operations} operations: ${(statSync(file).size / 1e6).toFixed(1)} MB, first paint ${Math.round(median(paints))} ms, `
      + `whole picture ${median(pictures)} ms, a frame of panning ${median(frames).toFixed(1)} ms (drawing ${median(draws).toFixed(1)} ms)`);
  }
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
