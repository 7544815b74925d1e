import { afterAll, beforeAll } from "vitest";
import { redisUrl, type SomeServer } from "../harness/lent-or-own.ts";
import { keyChangesContract } from "./key-changes.contract.ts";
import { redisPlace, sqlitePlace } from "./key-store-place.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

keyChangesContract("Redis", () => redisPlace(server.url));
keyChangesContract("SQLite", sqlitePlace);
