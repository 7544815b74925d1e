import { afterAll, beforeAll } from "vitest";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";
import { machineStoreContract } from "./machine-store.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

machineStoreContract("Redis", () => redisPlace(server.url));
machineStoreContract("SQLite", sqlitePlace);
