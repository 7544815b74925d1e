import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeMediaServer } from "../harness/fake-media-server.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const machines = ["attic", "cellar"] as const;

describe.skipIf(lentOnly("nats", "redis"))("speech and images on two machines", () => {
  const parts = new AsyncDisposableStack();
  let servers: readonly FakeMediaServer[];
  let fleet: Fleet;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), "trunkline-media-"));
    parts.defer(() => rm(folder, { recursive: true }));
    const file = join(folder, "models.json");
    await writeFile(file, JSON.stringify({ m: { x_capabilities: ["transcription", "speech", "image"] } }));
    servers = await Promise.all(machines.map(async () => parts.use(await FakeMediaServer.start())));
    const envOf = ({ url }: FakeMediaServer) => ({
      TRUNKLINE_RUNTIME: "openai",
      TRUNKLINE_RUNTIME_URL: url,
      TRUNKLINE_MODELS_FILE: file,
    });
    const wished = machines.map(
      (machine, place) => [machine, { env: envOf(servers[place] ?? expect.fail()) }] as const,
    );
    fleet = parts.use(await startFleet({ machines: Object.fromEntries(wished) }));
  });
  afterAll(() => parts.disposeAsync());

  const ask = (path: string, fields: Readonly<Record<string, string>>, file?: string): Promise<Response> => {
    const { baseUrl, key } = fleet.endpoint;
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    if (file !== undefined) form.append(file, new File(["abc"], "a.wav"));
    const json = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const [headers, body] =
      file === undefined ? [json, JSON.stringify(fields)] : [{ authorization: json.authorization }, form];
    return fetch(`${baseUrl}${path}`, { method: "POST", headers, body });
  };
  const breakNext = (): void => {
    for (const server of servers) {
      server.onAny = (response) => {
        for (const each of servers) each.onAny = undefined;
        response.destroy();
      };
    }
  };

  test.each<[path: string, fields: Record<string, string>, file: string | undefined]>([
    ["/audio/transcriptions", { model: "m" }, "file"],
    ["/audio/translations", { model: "m" }, "file"],
    ["/audio/speech", { model: "m", input: "Hello." }, undefined],
    ["/images/generations", { model: "m", prompt: "A sky" }, undefined],
    ["/images/edits", { model: "m", prompt: "A sky" }, "image"],
  ])("a request to %s goes to the other machine when the first one's server breaks off", async (path, fields, file) => {
    breakNext();
    const before = servers.flatMap(({ asked }) => asked).length;
    const response = await ask(path, fields, file);
    expect(response.status).toBe(200);
    expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(0);
    expect(servers.flatMap(({ asked }) => asked).length).toBe(before + 2);
  });

  test("speech whose machine is killed in mid-stream is cut off, and does not end as if it were whole", async () => {
    for (const server of servers) {
      server.onSpeech = (response) => {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        response.write("first");
      };
    }
    const response = await ask("/audio/speech", { model: "m", input: "Hello." });
    const machine = response.headers.get("x-trunkline-machine") ?? expect.fail("the machine is not named");
    const over = response.arrayBuffer();
    await fleet.agent(machine).kill();
    await expect(over).rejects.toThrow();
    await fleet.startAgent(machine);
  });

  test("a transcription whose machine is killed comes from the other machine", async () => {
    let held: FakeMediaServer | undefined;
    for (const server of servers) {
      server.onAny = () => {
        held = server;
        for (const each of servers) each.onAny = undefined;
      };
    }
    const asked = ask("/audio/transcriptions", { model: "m" }, "file");
    await until(() => held !== undefined, { what: "a server to be asked" });
    await fleet.agent(machines[held === servers[0] ? 0 : 1]).kill();
    expect(await (await asked).json()).toMatchObject({ text: "Hello there." });
  });
});
