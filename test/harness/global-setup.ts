import type { TestProject } from "vitest/node";
import { findServers } from "./find-servers.ts";

/** Vitest runs this once, before any test file is loaded. */
export async function setup(project: TestProject): Promise<void> {
  const servers = await findServers();
  console.log(`NATS: ${servers.nats.title}; Redis: ${servers.redis.title}`);
  project.provide("servers", servers);
}
