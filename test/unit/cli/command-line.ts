import { checkKey } from "#shared/records/judge-key.ts";
import type { KeyVerdict } from "#shared/records/key-record.ts";
import type { Command } from "commander";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { Environment } from "#shared/process/config.ts";
import { keysCommand } from "../../../services/cli/commands/keys.ts";
import { machinesCommand } from "../../../services/cli/commands/machines.ts";
import { pricesCommand } from "../../../services/cli/commands/prices.ts";
import { peopleCommand } from "../../../services/cli/commands/people.ts";
import { teamsCommand } from "../../../services/cli/commands/teams.ts";
import { routesCommand } from "../../../services/cli/commands/routes.ts";
import type { PairContext } from "../../../services/cli/commands/machines-pair.ts";
import { usageCommand } from "../../../services/cli/commands/usage.ts";
import { folderOfTest } from "../../harness/temporary-folder.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

interface Said {
  out: string;
  err: string;
}

/** `trunkline` on a state folder of its own, at the beginning of 2026. */
export async function commandLine() {
  const folder = folderOfTest();
  const clock = new TurnableClock({ wallMs: Date.UTC(2026, 0, 1) });

  const run = async (
    make: (context: PairContext) => Command,
    args: readonly string[],
    env: Environment = {},
  ): Promise<Said> => {
    const said = { out: "", err: "" };
    const command = make({
      environment: { TRUNKLINE_STATE_DIR: folder, ...env },
      stdout: { write: (text) => (said.out += text) },
      stderr: { write: (text) => (said.err += text) },
      clock,
      isPrivatelySigned: async (origin) => origin.endsWith(".internal"),
    });
    await command.parseAsync(args, { from: "user" }).catch((error: unknown) => {
      throw Object.assign(new Error(String(error), { cause: error }), { said, ...exitCodeOf(error) });
    });
    return said;
  };
  const keys = (...args: string[]): Promise<Said> => run(keysCommand, args);

  /** The store that the commands work on. */
  const inStore = async <Result>(work: (store: OpenedKeyStore) => Promise<Result>): Promise<Result> => {
    const store = await openKeyStore({ stateDir: folder }, { clock });
    try {
      return await work(store);
    } finally {
      await store.keys.close();
    }
  };

  return {
    folder,
    clock,
    /** What `trunkline keys …` says on standard output and standard error. */
    keys,
    machines: (...args: string[]): Promise<Said> => run(machinesCommand, args),
    machinesWith: (env: Environment, ...args: string[]): Promise<Said> => run(machinesCommand, args, env),
    prices: (...args: string[]): Promise<Said> => run(pricesCommand, args, { TRUNKLINE_CURRENCY: "EUR" }),
    teams: (...args: string[]): Promise<Said> => run(teamsCommand, args),
    people: (...args: string[]): Promise<Said> => run(peopleCommand, args),
    routes: (...args: string[]): Promise<Said> => run(routesCommand, args),
    usage: (...args: string[]): Promise<Said> => run(usageCommand, args),
    json: async (...args: string[]): Promise<unknown> => JSON.parse((await keys(...args, "--json")).out),
    issue: async (...args: string[]): Promise<{ id: string; key: string }> =>
      JSON.parse((await keys("issue", "--name", "alice", ...args, "--json")).out),
    inStore,
    /** What a key is worth to a gateway on the same store. */
    verdictOf: (key: string): Promise<KeyVerdict["outcome"]> =>
      inStore(async (store) => {
        const parsed = parseKeyToken(key);
        if (parsed.outcome !== "parsed") throw new Error("what was issued is no key");
        return (await checkKey({ token: parsed.token, ...store, nowMs: clock.wall() })).outcome;
      }),
  };
}

function exitCodeOf(error: unknown): object {
  return typeof error === "object" && error !== null && "exitCode" in error ? { exitCode: error.exitCode } : {};
}
