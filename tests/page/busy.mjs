// An incident among the traffic of a busy cluster: the evidence of histories/incidents with its revisions moved up, and requests of
// other clients, in order, on objects of their own, from half an hour before it to half an hour after.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const CLIENTS = 40;
const MINUTE = 60_000_000_000n;
const TEN = BigInt(Date.UTC(2026, 2, 2, 9)) * 1_000_000n;

// Who recorded what, as the incidents say.
export const SOURCES = ["--source", "audit-A.log:server=A,clock=apiserver-a", "--source", "audit-B.log:server=B,clock=apiserver-b"];

// Writes evidence of so many operations around an incident into a folder.
export function busy(folder, incident, operations) {
  mkdirSync(folder, { recursive: true });
  const VERSION = /(esourceVersion(?:=|":"|","value":"))([1-9]\d*)/g;
  const texts = readdirSync(incident).filter(name => /\.(log|jsonl)$/.test(name)).map(name => [name, readFileSync(join(incident, name), "utf8")]);
  const versions = texts.flatMap(([, text]) => [...text.matchAll(VERSION)].map(([, , n]) => Number(n)));
  for (const [name, text] of texts) writeFileSync(join(folder, name), text.replace(VERSION, (_, before, n) => before + (Number(n) + operations)));
  const [first, last] = [Math.min(...versions) + operations, Math.max(...versions) + operations];
  const lines = [], line = value => lines.push(JSON.stringify(value));
  let state = 20260302;
  const chance = () => (state = Math.imul(state ^ state >>> 15, 0x2c1b3c6d) + 0x9e3779b9 >>> 0) / 2 ** 32;
  const clients = Array.from({ length: CLIENTS }, (_, at) => ({ name: "system:node:worker-" + (at + 1), namespace: "tenant-" + (at + 1), steps: [], objects: new Map() }));
  const half = Math.floor(operations / 2);
  let revision = first - half - 10, id = 0;
  const object = (client, name, version) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { namespace: client.namespace, name, uid: `${client.namespace}-${name}`, resourceVersion: String(version) } });
  for (const [from, count] of [[TEN - 30n * MINUTE, half], [TEN + MINUTE, operations - half]]) {
    // The second half comes after every revision of the incident.
    if (from > TEN) revision = last + 10;
    const begin = revision;
    for (const client of clients) {
      const list = ++id, watch = ++id, uri = `/api/v1/namespaces/${client.namespace}/configmaps`;
      const items = [...client.objects].map(([name, version]) => object(client, name, version));
      client.watch = watch;
      client.steps.push([from, { kind: "request", id: list, method: "GET", uri }],
        [from + 2_000_000n, { kind: "response", id: list, status: 200, body: { apiVersion: "v1", kind: "ConfigMapList", metadata: { resourceVersion: String(begin) }, items } }],
        [from + 3_000_000n, { kind: "request", id: watch, method: "GET", uri: `${uri}?watch=true&resourceVersion=${begin}` }]);
    }
    const gap = 29n * MINUTE / BigInt(count);
    for (let n = 2 * CLIENTS; n < count; n++) {
      const client = clients[Math.floor(chance() * CLIENTS)], at = from + 1_000_000_000n + gap * BigInt(n);
      const name = "settings-" + Math.floor(chance() * 5), uri = `/api/v1/namespaces/${client.namespace}/configmaps`;
      const [request, took] = [++id, BigInt(1 + Math.floor(chance() * 9)) * gap / 10n + 1n];
      const known = client.objects.get(name), writes = !known || chance() < 0.4;
      if (writes) client.objects.set(name, ++revision);
      const body = object(client, name, client.objects.get(name));
      const method = !writes ? "GET" : known ? "PUT" : "POST";
      client.steps.push([at, { kind: "request", id: request, method, uri: method === "POST" ? uri : `${uri}/${name}`, ...(writes && { body: known ? object(client, name, known) : { ...body, metadata: { ...body.metadata, resourceVersion: undefined, uid: undefined } } }) }]);
      // Now and then nobody sees the answer to a read.
      if (writes || chance() > 0.01) client.steps.push([at + took, { kind: "response", id: request, status: method === "POST" ? 201 : 200, body }]);
      if (writes) client.steps.push([at + took + 1n, { kind: "event", id: client.watch, event: { type: known ? "MODIFIED" : "ADDED", object: body } }]);
    }
    for (const client of clients) client.steps.push([from + 29n * MINUTE + 2_000_000_000n, { kind: "end", id: client.watch, reason: "closed" }]);
  }
  for (const client of clients) {
    line({ kind: "capture", version: 1, client: client.name, incarnation: client.name + "#1", server: "B", clock: "wall" });
    client.steps.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    for (const [at, step] of client.steps) lines.push(JSON.stringify({ ...step, at: 0 }).replace(/"at":0}$/, `"at":${at}}`));
  }
  writeFileSync(join(folder, "traffic.jsonl"), lines.join("\n") + "\n");
}
