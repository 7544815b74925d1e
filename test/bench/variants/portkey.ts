import { peerFile, peersMissing } from "../peers/install-peers.ts";
import pinned from "../peers/package.json" with { type: "json" };
import { startSingleProcess } from "./single-process.ts";
import type { Variant } from "./variant.ts";

const { dependencies, overrides } = pinned;

/**
 * With an older @hono/node-server than npm would give it: with that one it fails every stream with status 500. It waits
 * 25 ms before the first chunk of a stream by design.
 */
export const portkey: Variant = {
  name: "portkey",
  title: "P, Portkey's gateway, without its log",
  version: () =>
    Promise.resolve(
      `@portkey-ai/gateway ${dependencies["@portkey-ai/gateway"]}, @hono/node-server ${overrides["@hono/node-server"]}, Node ${process.version}`,
    ),
  missing: peersMissing,
  start(means) {
    const entry = peerFile("@portkey-ai/gateway/build/start-server.js");
    const command = (port: number) =>
      Promise.resolve({ binary: process.execPath, args: [entry, `--port=${port}`, "--headless"] });
    const headers = {
      authorization: "Bearer none",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${means.farEndPort}/v1`,
    };
    return startSingleProcess({ name: "portkey", command, headers });
  },
};
