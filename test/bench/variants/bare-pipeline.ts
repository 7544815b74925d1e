import { join } from "node:path";
import manifest from "../../../package.json" with { type: "json" };
import { freePort } from "../../harness/free-port.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import { untilAnswers } from "./first-answer.ts";
import { makeKey } from "./known-key.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { numbered, pathProcess } from "./path-process.ts";
import { runningParts } from "./running-parts.ts";
import { bareEnvironment, lastWords } from "./single-process.ts";
import type { Variant } from "./variant.ts";

/** What the way over a broker costs by itself: whatever Trunkline costs above it is Trunkline's own doing. */
export function barePipeline({ gateways = 1 } = {}): Variant {
  return {
    name: gateways === 1 ? "bare" : `bare-${gateways}`,
    title: gateways === 1 ? title : `${title}, with ${gateways} gateways`,
    async version() {
      const { fastify, undici, "@nats-io/transport-node": transport } = manifest.dependencies;
      const { nats } = await ownServers();
      return `fastify ${fastify}, undici ${undici}, @nats-io/transport-node ${transport}, ${nats.title}, Node ${process.version}`;
    },
    missing: ownServersMissing,
    start: ({ farEndPort }) =>
      runningParts(async (parts) => {
        const { nats: found } = await ownServers();
        const nats = parts.use(await startNatsServer({ found }));
        const run = async (file: string, ...args: readonly string[]): Promise<OwnedChild> => {
          const [binary, environment] = [process.execPath, bareEnvironment()];
          return parts.use(
            await OwnedChild.start({ binary, args: [join(import.meta.dirname, file), ...args], environment }),
          );
        };
        const { headers, digest } = makeKey();
        const agent = await run("bare-agent.ts", nats.url, String(farEndPort));
        const ports: number[] = [];
        const processes = [pathProcess("nats", nats), pathProcess("agent", agent)];
        while (ports.length < gateways) {
          const port = await freePort();
          const gateway = await run("bare-gateway.ts", String(port), nats.url, digest);
          await untilAnswers({ port, headers }, async () => (await lastWords(gateway)) ?? lastWords(agent));
          processes.push(pathProcess(numbered("gateway", ports.length), gateway));
          ports.push(port);
        }
        return { ports, headers, processes };
      }),
  };
}

const title = "B, gateway, NATS and agent with none of our logic";
