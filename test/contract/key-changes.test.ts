import { afterAll, beforeAll } from "vitest";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { keyChangesContract } from "./key-changes.contract.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

keyChangesContract("Redis", () => redisPlace(server.url));
keyChangesContract("SQLite", sqlitePlace);
