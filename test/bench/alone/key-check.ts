import { issueKey } from "#shared/keys/issue-key.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { Peppers } from "#shared/keys/peppers.ts";
import { RedisKeyStore } from "#shared/keys/redis-key-store.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { KnownKeys } from "../../../services/gateway/access/known-keys.ts";
import { RedisLimits } from "../../../services/gateway/limits/redis-limits.ts";
import { RedisBooks } from "../../../services/gateway/settlement/redis-books.ts";
import { findServers } from "../../harness/find-servers.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { inLines, measureInRounds } from "./paired-rounds.ts";

/**
 * What a key costs a request, beside a bare GET on the same connection: a key that is known, one that is asked for, and
 * all limits of a key together. Run it with `npm run bench:keys`.
 */
const { redis: found } = await findServers();
const server = await startRedisServer({ found });
const redis = await connectRedis({ url: server.url, commandTimeoutMs: 5_000 });
try {
  const peppers = new Peppers(pepperText.parse("a pepper that is long enough to be one"));
  const keys = new RedisKeyStore(redis);
  const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 10_000 } as const;
  const budget = { tokens: 1_000_000_000_000, per: "day" } as const;
  const { token, record } = await issueKey(
    { name: "bench", scopes: ["*"], ttlMs: 3_600_000 },
    { keys, peppers, clock, actor: { by: "bench" } },
  );
  const knownKeys = new KnownKeys({ keys, peppers, clock, awayMs: 0, onOldPepper: () => undefined });
  await knownKeys.ask(token);
  const stayKnown = clock.every(100, () => knownKeys.heard());
  knownKeys.heard();

  const shared = new RedisLimits(redis, { clock });
  const books = new RedisBooks(redis);
  let sequence = 0;
  let seat = 0;
  const admit = async () => {
    seat += 1;
    const demand = { keyId: record.id, limits: { ...limits, budget }, seat: `seat-${seat}`, tokens: 1_000 };
    const admission = await shared.admit(demand);
    if (admission.outcome !== "admitted") throw new Error(`refused by ${admission.by}`);
    return admission.hold;
  };
  const settle = async (holds: Awaited<ReturnType<typeof admit>>[]): Promise<void> => {
    sequence += 1;
    const settled = holds.map((hold) => ({ hold, ran: true, usedTokens: 0 }));
    await books.write({ gateway: "bench", sequence, settled, toldOf: [], renewed: [], spent: [], usage: [] });
  };
  let holds: Awaited<ReturnType<typeof admit>>[] = [];
  const measured = await measureInRounds([
    { name: "a bare GET", once: () => redis.run("bench", (client) => client.get("absent")) },
    { name: "a known key, without limits", once: () => knownKeys.recall(token) },
    { name: "a key that is asked for", once: () => knownKeys.ask(token) },
    {
      name: "all limits of a known key",
      once: async () => {
        knownKeys.recall(token);
        holds.push(await admit());
        if (holds.length < 100) return;
        const ended = holds;
        holds = [];
        await settle(ended);
      },
    },
  ]);
  process.stdout.write(inLines(measured));
  stayKnown.cancel();
} finally {
  redis.close();
  await server.stop();
}
