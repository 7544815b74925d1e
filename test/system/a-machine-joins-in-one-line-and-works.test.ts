import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { findBinary } from "../harness/find-binary.ts";
import { type CertificateSettings, makeSelfSigned } from "../harness/self-signed.ts";
import { Site } from "../harness/start-site.ts";
import type { TrunklineProcess } from "../harness/trunkline-process.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const model = "llava";
const million = 1_000_000;

const folder = folderOfTests();
let site: Site;
beforeAll(async () => void (site = await Site.start()));
afterAll(() => site[Symbol.asyncDispose]());

describe("a machine that joined by the line that its site printed", () => {
  let ollama: FakeOllama;
  let agent: TrunklineProcess;
  let line: string;
  const stateDir = () => join(folder, "loft");
  const runtime = () => ({ TRUNKLINE_RUNTIME: "ollama", TRUNKLINE_RUNTIME_URL: ollama.url });

  beforeAll(async () => {
    const capabilities = ["completion", "vision", "tools"] as const;
    ollama = await FakeOllama.start({ models: [{ name: `${model}:latest`, capabilities }] });
    line = await site.joinLine("loft");
    agent = await site.startAgent(["--join", line], { ...runtime(), TRUNKLINE_STATE_DIR: stateDir() });
  });
  afterAll(() => ollama.stop());

  test("a machine that joined by the line that its site printed answers its first chat within fifteen seconds", async () => {
    const begunMs = performance.now();
    await site.endpoint.untilListed(model);
    expect(await site.endpoint.answer({ model, says: "Hello" })).toBe("Hello from Ollama.");
    expect(performance.now() - begunMs).toBeLessThan(15_000);
  });

  test.skipIf(process.platform !== "linux")(
    "a machine that joined by the line that its site printed has erased the line from its arguments when it is ready",
    async () => {
      await agent.logged("agent ready");
      const shown = await readFile(`/proc/${agent.processId}/cmdline`, "utf8");
      expect(shown.replaceAll("\0", " ").trim()).toBe("trunkline agent");
    },
  );

  test("a machine that joined by the line that its site printed streams, and gets an image of 20 MB whole", async () => {
    const stream = await site.endpoint.stream({ model, says: "Hello" });
    expect([await stream.over, stream.text, stream.done]).toEqual(["closed", "Hello from Ollama.", true]);
    const picture = randomBytes(15 * million).toString("base64");
    const content = [
      { type: "text", text: "What is this?" },
      { type: "image_url", image_url: { url: `data:image/png;base64,${picture}` } },
    ];
    const before = ollama.requestsTo("/api/chat").length;
    expect(await site.endpoint.answer({ model, messages: [{ role: "user", content }] })).toBe("Hello from Ollama.");
    const [arrived] = ollama.requestsTo("/api/chat").slice(before);
    expect(arrived?.body["messages"]).toEqual([expect.objectContaining({ images: [expect.any(String)] })]);
    expect(JSON.stringify(arrived?.body["messages"])).toContain(picture);
  });

  test("a machine that joined by the line that its site printed stops its runtime when the client leaves", async () => {
    const { onChat } = ollama;
    ollama.onChat = (answer) => answer.say("first");
    const before = ollama.requestsTo("/api/chat").length;
    const leaving = new AbortController();
    const stream = await site.endpoint.stream({ model, says: "Hello" }, leaving.signal);
    await until(() => stream.text === "first", { what: "the first token" });
    leaving.abort();
    const request = ollama.requestsTo("/api/chat")[before];
    await until(() => request?.closedEarly, { what: "the runtime's request to be closed", timeoutMs: 2_000 });
    ollama.onChat = onChat;
  });

  test("a machine that joined by the line that its site printed is known by its pairing from then on, and the line is in no log", async () => {
    expect(await agent.terminate()).toBe(0);
    const again = await site.startAgent([], { ...runtime(), TRUNKLINE_STATE_DIR: stateDir() });
    expect(await again.logged("agent ready")).toMatchObject({ machine: "loft" });
    const secret = line.split(".").at(-1) ?? "";
    const logs = [await agent.stderr(), await again.stderr(), await site.up.stderr()];
    const kept = await readFile(join(stateDir(), "pairing.json"), "utf8");
    for (const text of [...logs, kept]) expect(text).not.toContain(secret);
    expect(await again.terminate()).toBe(0);
  });
});

const openssl = await findBinary("openssl");
if (openssl === undefined) console.log("Skipping TLS: there is no openssl on the PATH to make a certificate with.");

describe.skipIf(openssl === undefined)("a machine of a site whose certificate only itself signed", () => {
  let certificate: CertificateSettings;
  let secured: Site;
  beforeAll(async () => {
    certificate = await makeSelfSigned();
    secured = await Site.start(certificate);
    const before = getCACertificates("default");
    // For this process, the client: the machine has the pin and nothing else.
    setDefaultCACertificates([...before, await readFile(certificate.TRUNKLINE_TLS_CERT, "utf8")]);
    return () => setDefaultCACertificates(before);
  });
  afterAll(() => secured[Symbol.asyncDispose]());

  test("a machine of a site whose certificate only itself signed joins by the pin in its line, works over TLS, and calls tools", async () => {
    const line = await secured.joinLine("attic");
    const { raw } = new X509Certificate(await readFile(certificate.TRUNKLINE_TLS_CERT));
    expect(line).toMatch(/^https:/);
    expect(line.split(".").at(-1)).toBe(createHash("sha256").update(raw).digest("base64url"));
    const file = join(folder, "line");
    await writeFile(file, line);
    const env = { TRUNKLINE_STATE_DIR: join(folder, "attic"), TRUNKLINE_SCRIPTED_MODELS: "scripted" };
    await secured.startAgent(["--join-file", file], env);
    await secured.endpoint.untilListed("scripted");
    const look = { type: "function", function: { name: "look", parameters: { type: "object" } } };
    const says = '/script tool=look args={"at":"sky"}';
    const called = await secured.endpoint.chat({ model: "scripted", says, tools: [look] });
    expect(await called.json()).toMatchObject({
      choices: [
        {
          finish_reason: "tool_calls",
          message: { tool_calls: [{ function: { name: "look", arguments: '{"at":"sky"}' } }] },
        },
      ],
    });
  });
});
