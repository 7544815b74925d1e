import { expect, test } from "vitest";
import { requestRows } from "../../../services/cli/commands/request-rows.ts";

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
