import { afterAll, beforeAll } from "vitest";
import { redisUrl, type SomeServer } from "../harness/lent-or-own.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";
import { machineStoreContract } from "./machine-store.contract.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

machineStoreContract("Redis", () => redisPlace(server.url));
machineStoreContract("SQLite", sqlitePlace);
