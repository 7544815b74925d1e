import { isDeepStrictEqual } from "node:util";
import { addMember, setTeam } from "#shared/records/change-team.ts";
import { setPerson, signedIn } from "#shared/records/change-person.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import type { StateStore } from "#shared/store/open-key-store.ts";
import { noUsage, openUsage, type UsageRow } from "#shared/usage/usage.ts";
import type { Operator } from "../operator.ts";
import { setPrice } from "../set-records.ts";
import { type Ask, askOverHttp } from "./ask-over-http.ts";

const most = { budget: { tokens: 1e12, per: "month" }, spend: { millionths: 1e12, per: "month" } } as const;
const team = "research";
const endUsers = 5;

/** Tokens and their cost, by names. */
type Sums = Record<string, { readonly tokens: number; readonly cost: number }>;

interface KeyOfTeam {
  readonly token: string;
  readonly id: string;
  readonly team?: string | undefined;
  readonly person?: string | undefined;
}

/** Requests by four keys in turn: of the site, of a team, of its member, and of an app of the member's with end users. */
export class TeamTraffic {
  readonly keys: readonly KeyOfTeam[];
  readonly #state: StateStore;
  #sent = 0;

  private constructor(keys: readonly KeyOfTeam[], state: StateStore) {
    this.keys = keys;
    this.#state = state;
  }

  /** Every book has budgets in tokens and in money, which nothing uses up. */
  static async of(operator: Operator): Promise<TeamTraffic> {
    const site = { ...operator.store, clock, actor: { by: "the operator" } };
    await setPrice("scripted", { input: 200_000, output: 600_001 }, site);
    await setTeam(team, { isNew: true, ...most }, site);
    const { name: person } = await signedIn({ issuer: "https://id", subject: "a", called: "Anna", claims: [] }, site);
    await setPerson(person, most, site);
    await addMember(team, { person }, site);
    const ofUsers = { endUsers: "header", perUserBudget: most.budget, perUserSpend: most.spend } as const;
    const keys: KeyOfTeam[] = [];
    for (const terms of [{}, { team }, { team, person }, { team, person, ...ofUsers }]) {
      const { token, record } = await operator.issue({ limits: { concurrency: 1_000, ...most }, ...terms });
      keys.push({ ...record, token: token.reveal() });
    }
    return new TeamTraffic(keys, operator.store.state);
  }

  readonly ask: Ask = (chat, options) => {
    const sent = (this.#sent += 1);
    const key = this.keys[sent % this.keys.length]?.token ?? "";
    return askOverHttp(chat, { ...options, key, headers: { "x-openwebui-user-id": `user-${sent % endUsers}` } });
  };

  /** Returns the sums of all rows and of all records by key, team, person and model, and what the counters of budgets have. */
  async sums(): Promise<Record<"rows" | "records" | "spentByRows" | "spent", Sums>> {
    const state = this.#state;
    const { rows } = await openUsage(state).read({ from: "2000-01-01", to: "9999-12-31" });
    const records: Row[] = [];
    await openRequests(state).visit({}, (record) => {
      const { team: its = null, person = null } = this.keys.find(({ id }) => id === record.keyId) ?? {};
      records.push({
        ...noUsage,
        day: "",
        ...record,
        model: record.model ?? null,
        team: its,
        person,
        cost: record.cost ?? 0,
      });
    });
    const app = this.keys.at(-1)?.id;
    const parts = (row: Row) => (["keyId", "team", "person", "model"] as const).map((part) => `${part} ${row[part]}`);
    const books = ({ keyId, team: its, person }: Row) => [
      // The counters of keys in SQLite are the rows themselves.
      state.kind === "redis" && keyId,
      its !== null && `team:${its}`,
      person !== null && `person:${person}`,
      keyId === app && `user:${keyId}`,
    ];
    const spentByRows = sumsOf(rows, books);
    return { rows: sumsOf(rows, parts), records: sumsOf(records, parts), spentByRows, spent: await spentOf(state) };
  }
}

type Row = Pick<UsageRow, "day" | "keyId" | "team" | "person" | "model" | "promptTokens" | "completionTokens" | "cost">;

function sumsOf(rows: readonly Row[], names: (row: Row) => readonly (string | false)[]): Sums {
  const sums: Sums = {};
  for (const row of rows) {
    const tokens = row.promptTokens + row.completionTokens;
    // Requests that no machine took have no tokens, and not all of them have records.
    for (const name of names(row)) if (name !== false && tokens > 0) add(sums, name, { tokens, cost: row.cost });
  }
  return sums;
}

function add(sums: Sums, name: string, { tokens = 0, cost = 0 }): void {
  const before = sums[name] ?? { tokens: 0, cost: 0 };
  sums[name] = { tokens: before.tokens + tokens, cost: before.cost + cost };
}

/** Returns the names whose sums differ, with both. */
export function differences(one: Sums = {}, other: Sums = {}) {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .map((name) => [name, one[name], other[name]] as const)
    .filter(([, its, others]) => !isDeepStrictEqual(its, others));
}

/** Returns the counters of budgets of a month, by book. Those of a key's end users are added up. */
async function spentOf(state: StateStore): Promise<Sums> {
  const sums: Sums = {};
  const count = (book: string, isMoney: boolean, amount: number): void =>
    add(sums, book.replace(/^(user:[^:]+):.*/, "$1"), { [isMoney ? "cost" : "tokens"]: amount });
  if (state.kind === "sqlite") {
    const rows = state.database.read("look", (sql) => sql.all`SELECT book, unit, amount FROM spending`);
    for (const { book, unit, amount } of rows) count(String(book), unit === "money", Number(amount));
    return sums;
  }
  const { redis } = state;
  for (const at of await redis.run("look", (client) => client.keys(`${client.options.keyPrefix}spent*`))) {
    const [name, money, book] = /spent(-money)?:(.*):\d{4}-\d{2}$/.exec(at) ?? [];
    if (name === undefined || book === undefined) continue;
    count(book, money !== undefined, Number(await redis.run("look", (client) => client.get(name))));
  }
  return sums;
}
