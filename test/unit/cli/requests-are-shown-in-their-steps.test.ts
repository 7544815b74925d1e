import { expect, test } from "vitest";
import { timeOf, wayOf } from "../../../services/cli/commands/requests.ts";
import { shownRequest, triedMachine } from "../requests/shown-requests.ts";
import { requestRows } from "../../../services/cli/commands/request-rows.ts";

const slower = { reason: "slower" as const, why: "costs more", cost_ms: 90 };
const request = shownRequest({
  user_agent: "curl/8\u001b[31m",
  code: "agent_disconnected",
  advice: "Look at the machine.",
  prompt_tokens: 1_000,
  cached_tokens: 900,
  completion_tokens: 80,
  tokens_per_second: 99.5,
  tried: [
    triedMachine("attic", {
      why: "costs least: 10 ms for the prompt",
      others: [{ machine: "cellar", ...slower }],
      code: "server_is_overloaded",
    }),
    triedMachine("cellar", { ...slower, at_ms: 1_001, model: "llama3:latest", code: "agent_disconnected" }),
  ],
});

test("requests show tells the steps of a request in their order, and what to do about its fault", () => {
  const text = wayOf(request, { keyName: "alice", widthMax: undefined });
  expect(text).toContain("key      abcdefABCDEF (alice)\n");
  expect(text).toContain("client   10.0.0.7, curl/8?[31m\n");
  expect(text).toContain("tokens   1,000 of the prompt (900 cached), 80 of the answer\n");
  const steps = text.split("\n\n")[1]?.split("\n");
  expect(steps).toEqual([
    "    0 ms  arrived",
    "    2 ms  offered to attic, as llama3: costs least: 10 ms for the prompt",
    "            cellar came after it: costs more, 90 ms",
    "1,001 ms  attic refused it or failed: server_is_overloaded",
    "1,001 ms  offered to cellar, as llama3:latest: costs more",
    "1,010 ms  cellar took it",
    "1,200 ms  first piece of the answer",
    "2,000 ms  cellar refused it or failed: agent_disconnected",
    "2,000 ms  ended by the machine: agent_disconnected, status 200, 99.5 tokens/s",
  ]);
  expect(text.trimEnd().endsWith("\n\nLook at the machine.")).toBe(true);
});

test("requests show fits the terminal", () => {
  const lines = wayOf(request, { keyName: "alice", widthMax: 40 }).split("\n\n")[1]?.split("\n") ?? [];
  expect(lines.every(({ length }) => length <= 40)).toBe(true);
});

const nowMs = new Date(2026, 10, 27, 14, 30).getTime();

test.each([
  ["14:03", new Date(2026, 10, 27, 14, 3).getTime()],
  ["15:00", new Date(2026, 10, 26, 15, 0).getTime()],
  ["2026-11-20 09:00", new Date(2026, 10, 20, 9, 0).getTime()],
  ["2026-11-20T09:00:00Z", Date.UTC(2026, 10, 20, 9)],
  ["30m", nowMs - 1_800_000],
  ["2026-11-20", new Date(2026, 10, 20).getTime()],
  ["yesterday", undefined],
  ["last week 5", undefined],
  ["25:00", undefined],
])("the time to search from, %s, is the latest such time", (text, atMs) => {
  expect(timeOf(text, nowMs)).toBe(atMs);
});

const ended = { time: Date.UTC(2026, 0, 1), method: "POST", path: "/v1/chat/completions", status: 200, ms: 1_234 };
const served = { model: "qwen3:8b", machine: "attic", promptTokens: 12_345, completionTokens: 7, firstTokenMs: 210 };

/** Returns the row of a request, without the headings above the first one. */
function rowOf(fields: object, { columns = 120, coloured = false } = {}): string {
  const rows = requestRows({ columns });
  rows(JSON.stringify({ ...ended, ...fields }), { coloured });
  return rows(JSON.stringify({ ...ended, ...fields }), { coloured });
}

test("rows of served, refused and broken requests line up at their total", () => {
  const rows = [
    rowOf({ ...served, outcome: "ok" }),
    rowOf({ status: 401, outcome: "key_invalid" }),
    rowOf({ ...served, model: `long-${"x".repeat(99)}`, outcome: "agent_disconnected" }),
  ];
  expect(new Set(rows.map((row) => row.indexOf("1.23 s"))).size).toBe(1);
  expect(rows[0]).toMatch(/qwen3:8b +attic +12,345 +7 +0\.21 s +1\.23 s\n$/);
});

test.each([
  ["ok", 32],
  ["client_closed", 33],
  ["agent_disconnected", 31],
])("the colour of a row is that of its outcome %s, also where the status said 200 before", (outcome, colour) => {
  expect(rowOf({ ...served, outcome }, { coloured: true })).toContain(`\u001b[${colour}m200`);
});

test("a row of a served request fits into 80 columns, and the name of a model cannot control the terminal", () => {
  const row = rowOf({ ...served, model: "m\u001b[2J\n".repeat(20), outcome: "ok" }, { columns: 80 });
  expect(row.trimEnd().length).toBeLessThanOrEqual(80);
  expect(row.slice(0, -1)).not.toMatch(/\p{Cc}/u);
});
