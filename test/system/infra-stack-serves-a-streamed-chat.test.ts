import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { infraFolder } from "../harness/infra/compose-file.ts";
import { model, startStack, type Stack } from "../harness/infra/start-stack.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);

/** The image's own check, against a gateway's operations port. */
async function healthcheck(operationsUrl: string): Promise<number> {
  const env = { TRUNKLINE_OPERATIONS_PORT: new URL(operationsUrl).port };
  return run(process.execPath, [join(infraFolder, "healthcheck.ts")], { env }).then(
    () => 0,
    (error: unknown) => (error instanceof Error && "code" in error ? Number(error.code) : -1),
  );
}

describe.skipIf(lentOnly("nats", "redis"))("the processes of infra/compose.yaml, on its configuration files", () => {
  let stack: Stack;
  beforeAll(async () => void (stack = await startStack()));
  afterAll(() => stack[Symbol.asyncDispose]());

  test("a chat streams through each gateway, piece by piece", async () => {
    for (const endpoint of stack.endpoints) {
      const goOn = Promise.withResolvers<void>();
      stack.ollama.onChat = async (chat) => {
        chat.say("Hello ");
        await goOn.promise;
        chat.say("from far.");
        chat.done();
      };
      const stream = await endpoint.stream({ model, says: "Hello" });
      await until(() => stream.text === "Hello ", { what: "the first piece, while the second is not said yet" });
      goOn.resolve();
      expect(await stream.over).toBe("closed");
      expect([stream.text, stream.done]).toEqual(["Hello from far.", true]);
    }
  });

  test("a body larger than the broker's messages crosses it", async () => {
    stack.ollama.onChat = (chat) => chat.done();
    const [endpoint] = stack.endpoints;
    const response = await endpoint?.chat({ model, says: "x".repeat(3_000_000) });
    expect(response?.status).toBe(200);
    await response?.body?.cancel();
  });

  test("no process meets a refusal of the broker", async () => {
    for (const process of [...stack.gateways, stack.agent]) {
      const levels = (await process.logLines()).filter(({ level }) => level >= 50);
      expect([process.title, levels]).toEqual([process.title, []]);
    }
  });

  test("the image's check finds a gateway that runs healthy, and one that is gone not", async () => {
    const [gateway] = stack.gateways;
    expect(await healthcheck(gateway?.operationsUrl ?? "")).toBe(0);
    await gateway?.kill();
    expect(await healthcheck(gateway?.operationsUrl ?? "")).toBe(1);
  });
});
