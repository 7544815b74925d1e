import { readdir, readFile } from "node:fs/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { barePipeline } from "../bench/variants/bare-pipeline.ts";
import { trunkline } from "../bench/variants/trunkline.ts";
import { firstModel, type Variant } from "../bench/variants/variant.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const rows: readonly { readonly variant: Variant; readonly processes: readonly string[] }[] = [
  { variant: barePipeline, processes: ["agent", "gateway", "nats"] },
  { variant: trunkline, processes: ["agent", "gateway", "nats", "redis"] },
];

describe.skipIf(lentOnly("nats", "redis"))("a variant of the bench", () => {
  test.each(rows)("$variant.name answers, refuses a wrong key, and leaves nothing", async (row) => {
    await using farEnd = await FakeOtherServer.start({ models: [firstModel] });
    const folder = folderOfTest();
    vi.stubEnv("TMPDIR", folder);
    onTestFinished(() => void vi.unstubAllEnvs());
    let pids: readonly number[];
    {
      await using running = await row.variant.start({ farEndPort: farEnd.port, folder });
      expect(running.processes.map(({ name }) => name).toSorted()).toEqual(row.processes);
      pids = running.processes.map(({ pid }) => pid);
      expect(await Promise.all(pids.map(isRunning))).toEqual(pids.map(() => true));
      const key = running.headers["authorization"]?.replace("Bearer ", "") ?? "";
      const endpoint = new Endpoint({ baseUrl: `http://127.0.0.1:${running.port}/v1`, key });
      expect(await endpoint.answer({ model: firstModel, says: "Hi" })).not.toBe("");
      const stream = await endpoint.stream({ model: firstModel, says: "Hi" });
      await stream.over;
      expect(stream.events.at(-1)).toBe("[DONE]");
      expect(stream.events.map(contentOf).join("")).toBe("Hello from here.");
      expect((await endpoint.withKey(`${key}x`).chat({ model: firstModel, says: "Hi" })).status).toBe(401);
    }
    expect(await Promise.all(pids.map(isRunning))).toEqual(pids.map(() => false));
    expect(await readdir(folder)).toEqual([]);
  });
});

function contentOf(event: string): string {
  if (event === "[DONE]") return "";
  const { choices } = JSON.parse(event) as { choices?: { delta?: { content?: string } }[] };
  return choices?.[0]?.delta?.content ?? "";
}

/** One that has ended and was not waited for yet does not run any more. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat !== "" && !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
}
