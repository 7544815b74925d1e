import { hash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { freePort } from "../../harness/free-port.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { bareEnvironment, pathProcess, runningParts, untilAnswers, type Variant } from "./variant.ts";

/** The floor of the design: what a way over a broker costs without any of Trunkline's features. */
export const barePipeline: Variant = {
  name: "bare",
  title: "a bare pipeline of gateway, NATS and agent: Fastify, undici, one key, no other feature",
  missing: ownServersMissing,
  start: ({ farEndPort }) =>
    runningParts(async (parts) => {
      const { nats: found } = await ownServers();
      const nats = parts.use(await startNatsServer({ found }));
      const run = async (file: string, ...args: readonly string[]): Promise<OwnedChild> => {
        const command = [join(import.meta.dirname, file), ...args];
        const environment = bareEnvironment();
        return parts.use(await OwnedChild.start({ binary: process.execPath, args: command, environment }));
      };
      const key = `bench_${randomBytes(24).toString("base64url")}`;
      const headers = { authorization: `Bearer ${key}` };
      const agent = await run("bare-agent.ts", nats.url, String(farEndPort));
      const port = await freePort();
      const gateway = await run("bare-gateway.ts", String(port), nats.url, hash("sha256", key));
      await untilAnswers({ port, headers }, [gateway, agent]);
      const processes = [pathProcess("gateway", gateway), pathProcess("nats", nats), pathProcess("agent", agent)];
      return { port, headers, processes };
    }),
};
