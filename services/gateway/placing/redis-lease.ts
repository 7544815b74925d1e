import type { StateStore } from "#shared/store/open-key-store.ts";

/** For how long a gateway keeps the lease after it renewed it; another one takes over then. */
const leaseMs = 4_500;

const holdLua = `
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1
`;

/** The lease by which one gateway of a site at a time tells machines what to keep. The only gateway of a site needs none. */
export function keeperLease(state: StateStore, gateway: string): { hold(): Promise<boolean> } {
  if (state.kind === "sqlite") return { hold: async () => true };
  const { redis } = state;
  const hold = redis.script<number>(holdLua, 1);
  return { hold: async () => (await hold("hold the lease", "keeper", gateway, leaseMs)) === 1 };
}
