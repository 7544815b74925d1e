import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { changeKey, revokeKey } from "#shared/records/change-key.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { keyId, type KeyId, type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import { type Model, modelListing } from "#shared/protocol/model.ts";
import { formatDuration, showKey } from "#shared/records/shown-key.ts";
import { readConfig, secret } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { CliContext } from "../terminal/command-line.ts";
import { findKey } from "../site/find-gateway.ts";
import { givenOperations, type OperationsOptions } from "../site/operations-port.ts";
import { changedRecord, withKeyStore } from "../site/with-key-store.ts";

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
  if (url !== undefined) return issuerAtPort(url, context);
  if (settings.redisUrl !== undefined) return issuerInStore("the Redis of TRUNKLINE_REDIS_URL", context);
  const folder = resolve(settings.stateDir);
  if (existsSync(folder)) return issuerInStore(folder, context);
  throw new StartFailure(
    exitCodes.config,
    `There is no site here that could issue a key: ${folder} is missing. Name a key with --key, a gateway's operations port with --operations-url, or the folder of the site with TRUNKLINE_STATE_DIR.`,
  );
}

function issuerInStore(place: string, context: CliContext): KeyIssuer {
  const quiet = { json: true } as const;
  return {
    place,
    issue: (key) =>
      withKeyStore(context, quiet, async (store) => {
        const { token } = await issueKey({ ...key, scopes: [...key.scopes] }, store);
        return token;
      }),
    extend: (id, ttlMs) =>
      withKeyStore(context, quiet, async (store) => {
        const record = changedRecord(await changeKey(id, { action: "extended", ttlMs }, store), { id, place });
        return record === undefined ? [] : showKey(record, store.clock.wall()).old_secrets_valid_until;
      }),
    revoke: (id) =>
      withKeyStore(context, quiet, async (store) => void (await revokeKey({ id, withIssued: false }, store))),
    models: (list) => list(findKey("model", context.environment).token),
  };
}

const issued = z.object({ key: z.string() });
const revoked = z.object({ id: keyId });
const extended = z.object({ old_secrets_valid_until: z.array(z.string()) });

function issuerAtPort(url: string, context: CliContext): KeyIssuer {
  const port = givenOperations({ operationsUrl: url }, context);
  return {
    place: url,
    async issue({ name, scopes, ttlMs }) {
      const { key } = await port.post("/keys", issued, { name, scopes, ttl: formatDuration(ttlMs) });
      const parsed = parseKeyToken(key);
      if (parsed.outcome === "parsed") return parsed.token;
      throw new StartFailure(exitCodes.unavailable, `The operations port ${url} issued no key of Trunkline.`);
    },
    async extend(id, ttlMs) {
      const { old_secrets_valid_until } = await port.post(`/keys/${id}/extend`, extended, {
        ttl: formatDuration(ttlMs),
      });
      return old_secrets_valid_until;
    },
    revoke: async (id) => void (await port.post(`/keys/${id}/revoke`, revoked)),
    async models() {
      const { data } = await port.get("/models", modelListing);
      // The smallest window of a model holds on all machines that have it.
      const bySize = data.toSorted((one, other) => other.context_window - one.context_window);
      const models = bySize.map((each): Model => {
        return { ...each, object: "model", owned_by: each.machine, apple_mlx: each.apple_mlx || undefined };
      });
      return [...new Map(models.map((each) => [each.id, each])).values()];
    },
  };
}
