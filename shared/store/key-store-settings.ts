import { z } from "zod";
import { type Pepper, pepperText } from "../keys/pepper.ts";
import { secret } from "../process/config.ts";

const redisUrl = z
  .string()
  .refine(
    isRedisUrl,
    "must be a URL that begins with redis:// or rediss://, special characters of a password percent-encoded",
  );

export const keyStoreVariables = {
  TRUNKLINE_REDIS_URL: secret(redisUrl.optional()),
  TRUNKLINE_STATE_DIR: z.string().default(".trunkline"),
  TRUNKLINE_KEY_PEPPER: secret(pepperText.optional()),
  /** Accepted in addition to `TRUNKLINE_KEY_PEPPER` while one pepper replaces another. */
  TRUNKLINE_KEY_PEPPER_ALSO: secret(pepperText.optional()),
};

export interface KeyStoreSettings {
  readonly redisUrl?: string | undefined;
  /** The folder of the embedded store and its pepper. It is not touched when Redis is configured. */
  readonly stateDir: string;
  readonly pepper?: Pepper | undefined;
  readonly pepperAlso?: Pepper | undefined;
}

export function keyStoreSettings(config: z.output<z.ZodObject<typeof keyStoreVariables>>): KeyStoreSettings {
  return {
    redisUrl: config.TRUNKLINE_REDIS_URL,
    stateDir: config.TRUNKLINE_STATE_DIR,
    pepper: config.TRUNKLINE_KEY_PEPPER,
    pepperAlso: config.TRUNKLINE_KEY_PEPPER_ALSO,
  };
}

function isRedisUrl(text: string): boolean {
  try {
    const url = new URL(text);
    decodeURIComponent(url.username + url.password);
    return url.protocol === "redis:" || url.protocol === "rediss:";
  } catch {
    return false;
  }
}
