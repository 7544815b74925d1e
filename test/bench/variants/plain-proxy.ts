import { join } from "node:path";
import manifest from "../../../package.json" with { type: "json" };
import { makeKey } from "./known-key.ts";
import { startSingleProcess } from "./single-process.ts";
import type { Variant } from "./variant.ts";

const server = join(import.meta.dirname, "plain-proxy-server.ts");

/** What one process of Node can do when it is written for nothing but that. */
export const plainProxy: Variant = {
  name: "plain-proxy",
  title: "F, a plain proxy of Fastify and undici in one process, without a broker",
  version() {
    const { fastify, undici } = manifest.dependencies;
    return Promise.resolve(`fastify ${fastify}, undici ${undici}, Node ${process.version}`);
  },
  missing: () => Promise.resolve(undefined),
  start(means) {
    const { headers, digest } = makeKey();
    const command = (port: number) =>
      Promise.resolve({
        binary: process.execPath,
        args: [server, String(port), String(means.farEndPort), digest],
      });
    return startSingleProcess({ name: "proxy", command, headers });
  },
};
