import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import type { SentParts } from "#shared/admin/admin-call.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { keyOperations } from "#shared/admin/key-operations.ts";
import { machineOperations } from "#shared/admin/machine-operations.ts";
import { type KeyId, type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import type { Model } from "#shared/protocol/model.ts";
import { formatDuration } from "#shared/process/quantities.ts";
import { readConfig, secret } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { CliContext } from "../terminal/command-line.ts";
import { findKey } from "../site/find-gateway.ts";
import { givenOperations, type OperationsOptions, type OperationsPort } from "../site/operations-port.ts";
import { withKeyStore } from "../site/with-key-store.ts";

/** The means to issue keys of a site and to revoke them. */
export interface KeyIssuer {
  /** The state folder, Redis or operations port, for messages and records. */
  readonly place: string;
  issue(key: { name: string; scopes: readonly string[]; ttlMs: number }): Promise<KeyToken>;
  /**
   * Makes a key valid for `ttlMs` from now on, and returns when its replaced secrets end. Throws a `StartFailure` if it
   * cannot be extended.
   */
  extend(id: KeyId, ttlMs: number): Promise<readonly string[]>;
  revoke(id: KeyId): Promise<void>;
  /** Returns the models of the site without a new key: `list` asks for those of a key. */
  models(list: (key: KeyToken) => Promise<readonly Model[]>): Promise<readonly Model[]>;
}

const siteSettings = z.object({
  operationsUrl: z.string().optional(),
  redisUrl: secret(z.string().optional()),
  stateDir: keyStoreSettings.shape.stateDir,
});

/**
 * Returns the means that the command line and the environment name: an operations port with an admin key, or else the
 * key store, as for `trunkline keys issue`.
 */
export function keyIssuer(given: OperationsOptions, context: CliContext): KeyIssuer {
  const settings = readConfig(siteSettings, context.environment);
  const url = given.operationsUrl ?? settings.operationsUrl;
  if (url !== undefined) {
    const port = givenOperations({ operationsUrl: url }, context);
    return { ...issuerBy((...asked) => port.ask(...asked), url), models: () => modelsAt(port) };
  }
  const folder = resolve(settings.stateDir);
  const place = settings.redisUrl === undefined ? folder : "the Redis of TRUNKLINE_REDIS_URL";
  if (settings.redisUrl !== undefined || existsSync(folder)) {
    const ask: Ask = (...asked) => withKeyStore(context, { json: true }, (store) => runOn(store, ...asked));
    return { ...issuerBy(ask, place), models: (list) => list(findKey("model", context.environment).token) };
  }
  throw new StartFailure(
    exitCodes.config,
    `There is no site here that could issue a key: ${folder} is missing. Name a key with --key, a gateway's operations port with --operations-url, or the folder of the site with TRUNKLINE_STATE_DIR.`,
  );
}

/** Asks the admin API: of a gateway, or on the store. */
type Ask = <Of extends (typeof keyOperations)[keyof typeof keyOperations]>(
  operation: Of,
  sent: SentParts<Of>,
) => Promise<z.output<Of["answer"]>>;

function issuerBy(ask: Ask, place: string): Omit<KeyIssuer, "models"> {
  return {
    place,
    async issue({ name, scopes, ttlMs }) {
      const { key } = await ask(keyOperations.issueKey, { body: { name, scopes, ttl: formatDuration(ttlMs) } });
      const parsed = parseKeyToken(key);
      if (parsed.outcome === "parsed") return parsed.token;
      throw new StartFailure(exitCodes.unavailable, `${place} issued no key of Trunkline.`);
    },
    async extend(id, ttlMs) {
      const sent = { params: { id }, body: { ttl: formatDuration(ttlMs) } };
      return (await ask(keyOperations.extendKey, sent)).old_secrets_valid_until;
    },
    revoke: async (id) => void (await ask(keyOperations.revokeKey, { params: { id } })),
  };
}

async function modelsAt(port: OperationsPort): Promise<readonly Model[]> {
  const { data } = await port.ask(machineOperations.listModels, {});
  // The smallest window of a model holds on all machines that have it.
  const bySize = data.toSorted((one, other) => other.context_window - one.context_window);
  const models = bySize.map((each): Model => {
    return { ...each, object: "model", owned_by: each.machine, apple_mlx: each.apple_mlx || undefined };
  });
  return [...new Map(models.map((each) => [each.id, each])).values()];
}
