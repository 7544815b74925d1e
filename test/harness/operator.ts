import { changeKey, type KeyChange, rotateKey } from "#shared/records/change-key.ts";
import { issueKey, type IssuedKey, type KeyDependencies, type NewKey } from "#shared/records/issue-key.ts";
import type { KeyId, KeyToken } from "#shared/keys/key-token.ts";
import { openKeyStore, type OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { pepperText } from "#shared/keys/pepper.ts";
import { joinTtlMsMax, makeJoin } from "#shared/records/join-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { joinLineText } from "#shared/protocol/pairing.ts";
import { addUsage, openUsage, type UsageRow } from "#shared/usage/usage.ts";
import { testPepper } from "./trunkline-command.ts";
import { until } from "./until.ts";

/** A store may stand still for longer than a gateway waits for it, and so may the process of a test. */
const patienceMs = 5_000;

/** Whoever manages keys and reads the usage beside the gateways, with a way of their own to the store. */
export class Operator implements AsyncDisposable {
  readonly store: OpenedKeyStore;

  private constructor(store: OpenedKeyStore) {
    this.store = store;
  }

  static async on(place: { readonly redisUrl?: string; readonly stateDir?: string }): Promise<Operator> {
    const settings = { stateDir: "/nowhere", keyPepper: pepperText.parse(testPepper), ...place };
    return new Operator(await openKeyStore(settings, { clock, patienceMs }));
  }

  /** The operator of a store that is open in this process already. */
  static beside(store: OpenedKeyStore): Operator {
    return new Operator(store);
  }

  issue(terms: Partial<NewKey> = {}): Promise<IssuedKey> {
    return issueKey({ name: "test", scopes: ["*"], ttlMs: 3_600_000, ...terms }, this.#means);
  }

  async change(id: KeyId, change: KeyChange): Promise<void> {
    const { outcome } = await changeKey(id, change, this.#means);
    if (outcome !== "changed") throw new Error(`the key was not ${change.action}: ${outcome}`);
  }

  /** Makes a join line for a machine that reaches the site at this URL. */
  async joinLine(machine: string, origin: string): Promise<string> {
    const { machines, keys } = this.store;
    const dependencies = { machines, keys, clock, actor: { by: "the operator" } };
    return joinLineText((await makeJoin({ name: machine, ttlMs: joinTtlMsMax, publicUrl: origin }, dependencies)).line);
  }

  async rotate(id: KeyId, graceMs: number): Promise<KeyToken> {
    const { token } = await rotateKey({ id, graceMs }, this.#means);
    if (token === undefined) throw new Error("the key was not rotated");
    return token;
  }

  /** All that was counted so far, of one key if one is named. */
  async usage(keyId?: KeyId): Promise<readonly UsageRow[]> {
    const { rows } = await openUsage(this.store.state).read({ from: "2000-01-01", to: "9999-12-31" });
    return keyId === undefined ? rows : rows.filter((row) => row.keyId === keyId);
  }

  /** The same as one row, of all days and models. */
  async usageSum(keyId?: KeyId): Promise<UsageRow | undefined> {
    const [first, ...others] = await this.usage(keyId);
    return first && others.reduce(addUsage, first);
  }

  /** The usage of a key, once it fits: by default once there is any. */
  booked(keyId: KeyId, fits: (sum: UsageRow) => boolean = () => true): Promise<UsageRow> {
    const look = async (): Promise<UsageRow | false> => {
      const sum = await this.usageSum(keyId);
      return sum !== undefined && fits(sum) && sum;
    };
    return until(look, { what: "the usage of the key to be booked" });
  }

  /** The usage as one row, once that has not changed for a while. */
  stillUsage(stillMs: number, keyId?: KeyId): Promise<{ readonly usage: UsageRow | undefined }> {
    let last: string | undefined;
    let sinceMs = 0;
    const look = async (): Promise<{ usage: UsageRow | undefined } | false> => {
      const usage = await this.usageSum(keyId);
      const now = JSON.stringify([usage]);
      if (now !== last) [last, sinceMs] = [now, performance.now()];
      return performance.now() - sinceMs > stillMs && { usage };
    };
    return until(look, { what: "the books to be still", intervalMs: 200, timeoutMs: 120_000 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.store.keys.close();
  }

  get #means(): KeyDependencies {
    const { keys, peppers } = this.store;
    return { keys, peppers, clock, actor: { by: "the operator" } };
  }
}
