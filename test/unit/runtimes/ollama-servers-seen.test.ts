import { expect, onTestFinished, test } from "vitest";
import { ollamaRuntime } from "../../../services/agent/runtimes/ollama/ollama.ts";
import { ReplayServer } from "../../harness/replay-server.ts";
import { managed } from "../../harness/ask-runtime.ts";

// What Ollama 0.33.0-rc2 answered, but for times that mean nothing.

test("a registry that is out of reach is no model that does not exist", async () => {
  const body =
    '{"status":"pulling manifest"}\n{"error":"pull model manifest: Get \\"https://registry.ollama.ai/v2/library/nope/manifests/latest\\": dial tcp: lookup registry.ollama.ai on 192.0.2.53:53: no such host"}\n';
  await using server = await ReplayServer.start({ "/api/pull": { body } });
  const runtime = ollamaRuntime({ url: server.url });
  onTestFinished(() => runtime.close());
  const pulling = managed(runtime, { action: "pull", model: "nope", signal: new AbortController().signal });
  await expect(pulling).rejects.toMatchObject({
    code: "upstream_error",
    message: "The runtime could not reach its model registry.",
    internal: expect.not.stringContaining("192.0.2.53"),
  });
});
