import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { relative, resolve } from "node:path";
import { Command } from "commander";
import type { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";
import { startSite } from "./variants/trunkline.ts";

/**
 * Counts the files and functions of `services` and `shared` that run in a gateway and an agent for one streamed "Hello!",
 * and for one chunk on its way back. Each process counts calls itself, by V8's precise coverage over the inspector.
 */
const program = new Command("npm run walk --")
  .description('Lists the files and functions that run for one streamed "Hello!", and for one chunk on its way back.')
  .option("--json", "print the whole list as JSON", false)
  .option("--functions", "name the functions of each file, with their calls", false)
  .addHelpText(
    "after",
    `
Request: all functions that run from the request to 300 ms after its end, without those that also run in three idle seconds.
  The answer has ten chunks, 30 ms apart, and the key has limits. It is the first request of both processes.
Chunk: the functions that run for each of eight chunks of a second stream, each sent alone; functions that run for some of
  them only, such as beats, are left out. Calls are the median over the chunks.`,
  );
const { json, functions: namesFunctions } = program.parse().opts<{ json: boolean; functions: boolean }>();

const chunks = 10;
const chunkGapMs = 30;
/** Timers of a process have their turn in this time, the rarest each 2 s. */
const idleMs = 3_000;
const model = "walked";
const root = resolve(import.meta.dirname, "../..");

/** Calls of each function of our own, by `<process> <file> <name> <offset>`. */
type Calls = ReadonlyMap<string, number>;

/** V8's coverage of one process, over its inspector. */
class Coverage implements Disposable {
  readonly #socket: WebSocket;
  readonly #name: string;
  #lastId = 0;

  private constructor(socket: WebSocket, name: string) {
    this.#socket = socket;
    this.#name = name;
  }

  static async of(name: string, process: TrunklineProcess): Promise<Coverage> {
    const url = /ws:\/\/\S+/.exec(await process.stderr())?.[0];
    if (url === undefined) throw new Error(`${name} opened no inspector`);
    const socket = new WebSocket(url);
    await once(socket, "open");
    const coverage = new Coverage(socket, name);
    await coverage.#call("Profiler.enable");
    await coverage.#call("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    return coverage;
  }

  /** Returns the calls since the last time that it was asked, and counts from zero again. */
  async take(): Promise<Calls> {
    const { result } = await this.#call("Profiler.takePreciseCoverage");
    const own = result.filter(({ url }) => /\/(services|shared)\/.*\.ts$/.test(url));
    return new Map(
      own.flatMap(({ url, functions }) =>
        functions.flatMap(({ functionName, ranges: [range] }) => {
          if (range === undefined || range.count === 0) return [];
          const file = relative(root, fileURLToPath(url));
          return [[[this.#name, file, functionName || "(anonymous)", range.startOffset].join(" "), range.count]];
        }),
      ),
    );
  }

  async #call(method: string, params = {}): Promise<Coverages> {
    const id = (this.#lastId += 1);
    this.#socket.send(JSON.stringify({ id, method, params }));
    for (;;) {
      const [{ data }] = (await once(this.#socket, "message")) as [{ readonly data: string }];
      const told = JSON.parse(data) as { id?: number; result: Coverages };
      if (told.id === id) return told.result;
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }
}

interface Coverages {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
    }[];
  }[];
}

/** A runtime in the shape of OpenAI. `beforeChunk` is awaited before each chunk of an answer. */
async function startRuntime(beforeChunk: (place: number) => Promise<unknown>) {
  const event = (response: ServerResponse, delta: object, finish: string | null = null): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model, choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    await request.toArray();
    if (request.url === "/v1/models") {
      const data = [{ id: model, object: "model", created: 1, owned_by: "walk" }];
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ object: "list", data }));
      return;
    }
    if (request.url !== "/v1/chat/completions") return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let place = 0; place < chunks; place += 1) {
      await beforeChunk(place);
      event(response, place === 0 ? { role: "assistant", content: "Hello!" } : { content: ` word ${place}` });
    }
    event(response, {}, "stop");
    response.end("data: [DONE]\n\n");
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { port, [Symbol.dispose]: () => server.close().closeAllConnections() };
}

async function walk(): Promise<{ request: Calls; chunk: Calls }> {
  let beforeChunk: (place: number) => Promise<unknown> = () => sleep(chunkGapMs);
  using runtime = await startRuntime((place) => beforeChunk(place));
  await using site = await startSite({
    farEndPort: runtime.port,
    env: { NODE_OPTIONS: "--inspect=127.0.0.1:0" },
  });
  const { gateway, agent, port } = site;
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const headers = { ...site.headers, "content-type": "application/json" };
  const models = async (): Promise<boolean> =>
    (await (await fetch(`${baseUrl}/models`, { headers })).text()).includes(`"${model}"`);
  await until(models, { what: "the gateway to list the model" });
  using ofGateway = await Coverage.of("gateway", gateway);
  using onMachine = await Coverage.of("agent", agent);
  const take = async (): Promise<Calls> =>
    new Map((await Promise.all([ofGateway.take(), onMachine.take()])).flatMap((calls) => [...calls]));

  const messages = [{ role: "user", content: "Hello!" }];
  const body = JSON.stringify({ model, messages, stream: true });
  let received = 0;
  const ask = async (): Promise<void> => {
    const response = await fetch(`${baseUrl}/chat/completions`, { method: "POST", headers, body });
    received = 0;
    let text = "";
    for await (const piece of response.body ?? []) {
      text += Buffer.from(piece).toString();
      received = text.split(`"content":" word`).length + (text.includes(`"Hello!"`) ? 0 : -1);
    }
    if (!text.includes("data: [DONE]")) throw new Error(`The stream broke: ${response.status} ${text.slice(-300)}`);
  };
  await take();
  await sleep(idleMs);
  const idle = await take();
  await ask();
  await sleep(300);
  const request = new Map([...(await take())].filter(([name]) => !idle.has(name)));

  const each: Calls[] = [];
  beforeChunk = async (place) => {
    if (place === 0) return;
    // The chunk before has reached the client, and what follows from it is over.
    await until(() => received >= place, { what: `chunk ${place} to reach the client`, intervalMs: 2 });
    await sleep(chunkGapMs);
    const calls = await take();
    // The first chunk also ends the wait for an answer.
    if (place > 1) each.push(calls);
  };
  await ask();
  const [first = new Map<string, number>()] = each;
  const always = [...first.keys()].filter((name) => each.every((calls) => calls.has(name)));
  const chunk = new Map(always.map((name) => [name, median(each.map((calls) => calls.get(name) ?? 0))]));
  return { request, chunk };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** The functions of each file, by process. */
function listOf(calls: Calls) {
  const rows = [...calls].map(([key, count]) => {
    const [process = "", file = "", ...name] = key.split(" ");
    return { process, file, name: name.slice(0, -1).join(" "), calls: count };
  });
  return Map.groupBy(rows, ({ process, file }) => `${process.padEnd(8)} ${file}`);
}

function totalsOf(calls: Calls): { files: number; functions: number; calls: number } {
  const files = new Set([...listOf(calls).keys()].map((name) => name.slice(9)));
  return { files: files.size, functions: calls.size, calls: [...calls.values()].reduce((sum, each) => sum + each, 0) };
}

const walked = await walk();
const titles = { request: 'One streamed "Hello!" of ten chunks', chunk: "One chunk on its way back" } as const;
if (json) {
  const told = Object.entries(walked).map(([name, calls]) => [
    name,
    { ...totalsOf(calls), list: [...listOf(calls).values()].flat() },
  ]);
  console.log(JSON.stringify(Object.fromEntries(told), null, 2));
} else {
  for (const name of ["request", "chunk"] as const) {
    console.log(`\n${titles[name]}\n`);
    for (const [place, functions] of [...listOf(walked[name])].toSorted(([a], [b]) => a.localeCompare(b))) {
      const names = functions.map(({ name: called, calls }) => (calls === 1 ? called : `${called} × ${calls}`));
      console.log(`  ${place.padEnd(62)} ${namesFunctions ? names.join(", ") : functions.length}`);
    }
  }
  console.log("");
  for (const name of ["request", "chunk"] as const) {
    const { files, functions, calls } = totalsOf(walked[name]);
    console.log(`${titles[name]}: ${files} files, ${functions} functions, ${calls} calls`);
  }
}
