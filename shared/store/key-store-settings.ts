import { z } from "zod";
import { pepperText } from "../keys/pepper.ts";
import { secret } from "../process/config.ts";

const redisUrl = z
  .string()
  .refine(
    isRedisUrl,
    "must be a URL that begins with redis:// or rediss://, special characters of a password percent-encoded",
  );

export const keyStoreSettings = z.object({
  redisUrl: secret(redisUrl.optional()),
  /** The folder of the embedded store and its pepper. It is not touched when Redis is configured. */
  stateDir: z.string().default(".trunkline"),
  keyPepper: secret(pepperText.optional()),
  /** Accepted in addition to `keyPepper` while one pepper replaces another. */
  keyPepperAlso: secret(pepperText.optional()),
});

export type KeyStoreSettings = Readonly<z.output<typeof keyStoreSettings>>;

function isRedisUrl(text: string): boolean {
  try {
    const url = new URL(text);
    decodeURIComponent(url.username + url.password);
    return url.protocol === "redis:" || url.protocol === "rediss:";
  } catch {
    return false;
  }
}
