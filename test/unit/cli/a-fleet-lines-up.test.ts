import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { ShownFleetMachine, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import { fleetTable, isReady, redraw } from "../../../services/cli/commands/status.ts";
import { routeTable } from "../../../services/cli/commands/route.ts";

function shown(machine: string, fields: Partial<ShownFleetMachine> = {}): ShownFleetMachine {
  return {
    machine,
    epoch: "1767225600000-0a1b2c3d",
    status: "present",
    state: "ready",
    runtime: "ollama",
    slots: 4,
    running: 1,
    queued: 0,
    queue_max: 64,
    strays: null,
    heard_ms_ago: 400,
    models: 3,
    open_jobs: 1,
    takes_work: true,
    why: null,
    ...fields,
  };
}

const fleet = [
  shown("attic"),
  shown("cellar", { status: "suspect", heard_ms_ago: 2_400, why: "not heard for 2 s: others come first" }),
  shown("old", { status: "left_out", why: "a newer agent of the same name is there (TRUNKLINE_MACHINE)" }),
  shown("gone", { status: "offline", state: "gone", heard_ms_ago: 7_300_000, why: "has said goodbye" }),
  shown("mac", {
    state: "draining",
    running: 12,
    slots: 16,
    open_jobs: 10,
    why: "draining: it finishes its jobs and takes no new one",
  }),
  shown("new", { state: "waiting", runtime: null, models: 0, heard_ms_ago: 45_000, why: "no model server answers" }),
];
const table = [
  "machine  state     runtime  slots  queue  jobs  models  heard  why",
  "attic    ready     ollama     1/4   0/64     1       3  0.4 s  -",
  "cellar   suspect   ollama     1/4   0/64     1       3  2.4 s  not heard for 2 s: others come first",
  "old      left out  ollama     1/4   0/64     1       3  0.4 s  a newer agent of the same name is there (TRUNKLINE_MACHINE)",
  "gone     offline   ollama     1/4   0/64     1       3    2 h  has said goodbye",
  "mac      draining  ollama   12/16   0/64    10       3  0.4 s  draining: it finishes its jobs and takes no new one",
  "new      waiting   -          1/4   0/64     1       0   45 s  no model server answers",
];

test("every machine is a line of its own, numbers end one below the other, and the reasons come last", () => {
  expect(fleetTable(fleet).split("\n")).toEqual([...table, ""]);
});

test("a site that has paired machines tells them from others, and how each is connected", () => {
  const away = {
    status: "offline",
    state: "gone",
    runtime: null,
    slots: 0,
    running: 0,
    queue_max: 0,
    models: 0,
  } as const;
  const paired = [
    shown("attic", { pairing: "paired", connection: "tunnel" }),
    shown("cellar", { pairing: "cordoned", connection: "direct", takes_work: false }),
    shown("loft", { ...away, pairing: "paired", connection: null, epoch: null, heard_ms_ago: 7_300_000 }),
    shown("new", { ...away, pairing: "joining", heard_ms_ago: null }),
    shown("old", { ...away, pairing: "revoked", heard_ms_ago: null }),
    shown("other", { pairing: null, connection: "direct" }),
    shown("shed", { pairing: "unpaired", connection: "direct" }),
  ];
  expect(fleetTable(paired).split("\n")).toEqual([
    "machine  state     paired  runtime  slots  queue  jobs  models  heard  why",
    "attic    ready     tunnel  ollama     1/4   0/64     1       3  0.4 s  -",
    "cellar   cordoned  direct  ollama     1/4   0/64     1       3  0.4 s  -",
    "loft     offline   away    -          0/0    0/0     1       0    2 h  -",
    "new      joining   away    -          0/0    0/0     1       0      -  -",
    "old      revoked   away    -          0/0    0/0     1       0      -  -",
    "other    ready     no      ollama     1/4   0/64     1       3  0.4 s  -",
    "shed     ready     no      ollama     1/4   0/64     1       3  0.4 s  -",
    "",
  ]);
  expect(paired.map(isReady)).toEqual([true, false, false, false, false, true, true]);
});

test("on a terminal reasons wrap within its width, and only the state has a colour", () => {
  const lines = fleetTable(fleet, { widthMax: 80, coloured: true }).trimEnd().split("\n");
  const bare = lines.map(stripVTControlCharacters);
  expect(Math.max(...bare.map(({ length }) => length))).toBeLessThanOrEqual(80);
  expect(bare[1]).toBe(table[1]);
  expect(lines[1]).toContain("attic    \u001b[32mready\u001b[39m     ollama");
  expect(lines.filter((line) => line.includes("\u001b[31m"))).toHaveLength(2);
});

test("a fleet is ready when a machine takes work that was heard lately", () => {
  expect(fleet.map(isReady)).toEqual([true, false, false, false, false, false]);
});

test("a route is a table in the order in which machines are asked", () => {
  const one: ShownRouteMachine = {
    machine: "attic",
    rank: 1,
    reason: null,
    why: null,
    slots: 4,
    free_slots: 3,
    queued: 0,
    has_room: true,
    context_window: 131_072,
    first_token_ms: 1_234,
    cost_ms: { slot: 0, backlog: 0, prompt: 1_234, answer: 0, delay: 0, total: 987 },
    tokens_per_second: 41.25,
  };
  const unmeasured = { first_token_ms: null, tokens_per_second: null, cost_ms: null };
  const other: ShownRouteMachine = {
    ...one,
    ...unmeasured,
    machine: "cellar",
    rank: null,
    reason: "no_model",
    context_window: null,
    why: "does not offer the model",
  };
  expect(routeTable([one, other])).toBe(
    [
      "rank  machine  free  queued   window    cost  first token  tokens/s  why\n",
      "   1  attic     3/4       0  131,072  987 ms     1,234 ms      41.3  -\n",
      "   -  cellar    3/4       0        -       -            -         -  does not offer the model\n",
    ].join(""),
  );
  expect(
    routeTable([
      { ...one, model: "large" },
      { ...other, model: "small" },
    ]),
  ).toBe(
    [
      "rank  machine  model  free  queued   window    cost  first token  tokens/s  why\n",
      "   1  attic    large   3/4       0  131,072  987 ms     1,234 ms      41.3  -\n",
      "   -  cellar   small   3/4       0        -       -            -         -  does not offer the model\n",
    ].join(""),
  );
  expect(routeTable([one, other], 83)).toMatch(/does not offer\n +the model\n$/);
});

test("a watched fleet is drawn over itself on a terminal, as much as there is room for, and repeated elsewhere", () => {
  const written: string[] = [];
  const output = { write: (text: string) => void written.push(text) };
  const plain = redraw(output);
  plain("a\nb\n");
  plain("c\n");
  expect(written.splice(0)).toEqual(["a\nb\n", "c\n"]);
  const drawn = redraw({ ...output, isTTY: true, rows: 4 });
  drawn("a\nb\n");
  drawn("1\n2\n3\n4\n5\n");
  expect(written).toEqual([
    "\u001b[2J\u001b[Ha\u001b[K\nb\u001b[K\n\u001b[J",
    "\u001b[H1\u001b[K\n2\u001b[K\n… and 3 more\u001b[K\n\u001b[J",
  ]);
});

test("the last fault of a machine is a line below the table, on a terminal wrapped to its width", () => {
  const last = { code: "upstream_error", model: "llama3", reason: "out of\u001b[2J memory", ms_ago: 12_400 };
  const faulty = [
    shown("attic"),
    shown("cellar", { last_fault: last }),
    shown("loft", { last_fault: { ...last, reason: null } }),
  ];
  const lines = fleetTable(faulty).trimEnd().split("\n").slice(4);
  expect(lines).toEqual([
    "last fault of cellar, 12 s ago, llama3: upstream_error: out of?[2J memory",
    "last fault of loft, 12 s ago, llama3: upstream_error",
  ]);
  expect(fleetTable(faulty, { widthMax: 40 })).toContain(
    "\nlast fault of cellar, 12 s ago, llama3:\nupstream_error: out",
  );
});
