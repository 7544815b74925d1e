import { join } from "node:path";
import { peerFile, peersMissing } from "../peers/install-peers.ts";
import pinned from "../peers/package.json" with { type: "json" };
import { startSingleProcess } from "./single-process.ts";
import type { Variant } from "./variant.ts";

const server = join(import.meta.dirname, "../peers/musistudio-server.ts");

export const musistudio: Variant = {
  name: "musistudio",
  title: "M, @musistudio/llms from OpenAI's shape to the same, its log off",
  version: () =>
    Promise.resolve(`@musistudio/llms ${pinned.dependencies["@musistudio/llms"]}, Node ${process.version}`),
  missing: peersMissing,
  start(means) {
    const entry = peerFile("@musistudio/llms/dist/cjs/server.cjs");
    const command = (port: number) =>
      Promise.resolve({ binary: process.execPath, args: [server, entry, String(port), String(means.farEndPort)] });
    return startSingleProcess({ name: "musistudio", command });
  },
};
