import { expect, test } from "vitest";
import { anywhere, demonstration, readyIn } from "../harness/start-trunkline.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

/** Starts `trunkline up` as a person does, who sets no level for the log. */
async function startUp(format: "json" | "text", ...options: readonly string[]) {
  const settings = { ...anywhere, ...demonstration, TRUNKLINE_LOG_LEVEL: "", TRUNKLINE_LOG_FORMAT: format };
  const up = await TrunklineProcess.start({ args: ["up", "--json", ...options], settings });
  const [line] = await up.printed(/^.*\n/);
  return { up, endpoint: readyIn(line).endpoint };
}

test("a request, a refused one and a cancelled one each show as one row with model, machine, tokens and times", async () => {
  const { up, endpoint } = await startUp("text");
  await using _ = up;
  await endpoint.answer({ model: "scripted", says: "/script tokens=3" });
  await endpoint.withKey("nonsense").models();
  await endpoint.chat({ model: "not-here", messages: [{ role: "user", content: "Hello" }] });
  const leave = new AbortController();
  const long = { model: "scripted", stream: true, messages: [{ role: "user", content: "/script tokens=9000" }] };
  const stream = await endpoint.chat(long, leave.signal);
  await stream.body?.getReader().read();
  leave.abort();
  const rows = await until(
    async () => {
      const lines = (await up.stderr()).trim().split("\n");
      return lines.length === 5 && lines;
    },
    { what: "the headings and four rows" },
  );
  const [headings, ...requests] = rows.map((row) => row.split(/ {2,}/));
  expect(headings).toEqual(["time", "status", "model", "machine", "prompt", "answer", "first", "total"]);
  const [time, machine, count, seconds] = [/^\d\d:\d\d:\d\d$/, /^.{1,10}$/, /^[\d,]+$/, /^\d+\.\d\d s$/].map(
    (pattern) => expect.stringMatching(pattern),
  );
  expect(requests).toEqual([
    [time, "200", "scripted", machine, count, "3", seconds],
    [time, "401", "GET /v1/models", "key_invalid", seconds],
    [time, "404", "not-here", "model_not_found", seconds],
    [time, "200", "scripted", machine, count, count, seconds, seconds, "client_closed"],
  ]);
});

test("requests are lines of JSON where no person reads them, and --quiet shows none", async () => {
  for (const [options, shown] of [
    [[], 1],
    [["--quiet"], 0],
  ] as const) {
    const { up, endpoint } = await startUp("json", ...options);
    await using _ = up;
    await endpoint.answer({ model: "scripted", says: "/script tokens=3" });
    expect(await up.terminate()).toBe(0);
    const requests = (await up.logLines()).filter(({ msg }) => msg === "request");
    const expected = { model: "scripted", status: 200, completionTokens: 3 };
    expect(requests).toEqual(Array.from({ length: shown }, () => expect.objectContaining(expected)));
  }
});
