import type { StateStore } from "#shared/store/open-key-store.ts";

const holdLua = `
local holder = redis.call("GET", KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1
`;

export interface Lease {
  /** Takes or renews the lease. Returns false while another gateway has it. */
  hold(): Promise<boolean>;
}

interface LeaseOptions {
  readonly name: string;
  readonly gateway: string;
  /** For how long a gateway keeps the lease after it renewed it; another one takes over then. */
  readonly forMs: number;
}

/** A lease lets one gateway of a site at a time do something. The only gateway of a state folder needs none. */
export function openLease(state: StateStore, { name, gateway, forMs }: LeaseOptions): Lease {
  if (state.kind === "sqlite") return { hold: async () => true };
  const { redis } = state;
  const hold = redis.script<number>(holdLua, 1);
  return { hold: async () => (await hold("hold the lease", name, gateway, Math.ceil(forMs))) === 1 };
}
