import type { RedisConnection } from "../process/redis-connection.ts";
import type { StateStore } from "../store/open-key-store.ts";
import type { SqlTags, StateDatabase } from "../store/state-database.ts";
import type { Alarm } from "./alarm.ts";

/** A call that a target has got or is to get. The call about the end of an alarm takes the place of the one about its beginning. */
export interface PlannedCall {
  readonly state: "began" | "over";
  /** `given-up`: every attempt of a day has failed. */
  readonly outcome: "due" | "sent" | "given-up";
  readonly attempts: number;
  /** When it is sent next, in milliseconds since 1970. */
  readonly nextAt: number;
}

/** An alarm with its latest call of each target, by the target's name and the time when that was made. */
export interface KeptAlarm extends Alarm {
  readonly overAt?: number | undefined;
  readonly calls: Readonly<Record<string, PlannedCall>>;
}

/** A gateway that was there when the site was judged. */
export interface KnownGateway {
  readonly name: string;
  readonly seenAt: number;
  readonly awayAt?: number | undefined;
  /** Set once it has said goodbye. */
  readonly left?: true | undefined;
}

/** The alarms of a site, and what has to be remembered to find their beginning and end. Times are milliseconds since 1970. */
export interface AlarmState {
  /** When a gateway last judged the site. */
  readonly judgedAt: number;
  readonly alarms: readonly KeptAlarm[];
  /** The gateways of the site by the tokens of their boots. */
  readonly gateways: Readonly<Record<string, KnownGateway>>;
}

const noAlarms: AlarmState = { judgedAt: 0, alarms: [], gateways: {} };

/** The alarms of a site in the store of its keys. Nobody asks it while there is no alert target. */
export interface AlarmStore {
  read(): Promise<AlarmState>;
  /** Replaces the state by the one that `make` returns for it. Calls `make` again if another gateway was faster. */
  change(make: (state: AlarmState) => AlarmState): Promise<void>;
}

export function openAlarmStore(state: StateStore): AlarmStore {
  return state.kind === "redis" ? inRedis(state.redis) : inDatabase(state.database);
}

const redisAt = "alarms";

/** KEYS: alarms. ARGV: the state that is replaced, the new one. */
const replaceLua = `
if (redis.call("GET", KEYS[1]) or "") ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[2])
return 1
`;
/** Attempts to change the state, of which each fails only where another gateway succeeded. */
const attemptsMax = 50;

function inRedis(redis: RedisConnection): AlarmStore {
  const replace = redis.script<number>(replaceLua, 1);
  const read = async () => (await redis.run("read the alarms", (client) => client.get(redisAt))) ?? "";
  return {
    read: async () => stateOf(await read()),
    async change(make) {
      for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
        const before = await read();
        const after = JSON.stringify(make(stateOf(before)));
        if (after === before || (await replace("write the alarms", redisAt, before, after)) === 1) return;
      }
      throw new Error(`the alarms were changed by others ${attemptsMax} times (attemptsMax)`);
    },
  };
}

function inDatabase(database: StateDatabase): AlarmStore {
  const find = (sql: SqlTags) => String(sql.get`SELECT state FROM alarms`?.["state"] ?? "");
  return {
    read: async () => stateOf(database.read("read the alarms", find)),
    change: async (make) =>
      database.change("write the alarms", (sql) => {
        const before = find(sql);
        const after = JSON.stringify(make(stateOf(before)));
        if (after !== before) sql.run`INSERT OR REPLACE INTO alarms VALUES (1, ${after})`;
      }),
  };
}

function stateOf(text: string): AlarmState {
  return text === "" ? noAlarms : (JSON.parse(text) as AlarmState);
}
