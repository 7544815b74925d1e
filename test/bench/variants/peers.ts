import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinary } from "../../harness/find-binary.ts";
import { freePort } from "../../harness/free-port.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import {
  bareEnvironment,
  pathProcess,
  runningParts,
  untilAnswers,
  type StartOptions,
  type Variant,
} from "./variant.ts";

/**
 * Other gateways, for comparison by hand: install them with pip, put them on the PATH, and name them in `--only`. README.md
 * has the commands. They run without limits, and their log is off.
 */
export const peers: readonly Variant[] = [
  peer("smg", "SMG, a router in Rust (PyPI: smg)", async ({ farEndPort }, port) => [
    "launch",
    "--host=127.0.0.1",
    `--port=${port}`,
    `--prometheus-port=${await freePort()}`,
    "--backend=openai",
    "--policy=round_robin",
    "--log-level=error",
    "--worker-urls",
    `http://127.0.0.1:${farEndPort}`,
  ]),
  peer("litellm", "LiteLLM's proxy, one worker (PyPI: litellm[proxy])", async ({ farEndPort, folder }, port) => {
    const config = join(folder, "litellm.yaml");
    const parameters = `{ model: "openai/*", api_base: "http://127.0.0.1:${farEndPort}/v1", api_key: none }`;
    const models = `model_list:\n  - model_name: "*"\n    litellm_params: ${parameters}\n`;
    await writeFile(config, `${models}general_settings: { master_key: ${litellmKey} }\n`);
    return ["--host", "127.0.0.1", "--port", `${port}`, "--config", config, "--num_workers", "1"];
  }),
];

/** LiteLLM does not start without a key. */
const litellmKey = `sk-${randomBytes(32).toString("hex")}`;
const headers = { authorization: `Bearer ${litellmKey}` };

function peer(
  name: string,
  title: string,
  argumentsOf: (options: StartOptions, port: number) => Promise<readonly string[]>,
): Variant {
  return {
    name,
    title,
    onlyWhenNamed: true,
    missing: async () => ((await findBinary(name)) === undefined ? `${name} is not on the PATH` : undefined),
    start: (options) =>
      runningParts(async (parts) => {
        const port = await freePort();
        const args = await argumentsOf(options, port);
        const binary = (await findBinary(name)) ?? name;
        const child = parts.use(await OwnedChild.start({ binary, args, environment: bareEnvironment() }));
        await untilAnswers({ port, headers }, [child]);
        return { port, headers, processes: [pathProcess("gateway", child)] };
      }),
  };
}
