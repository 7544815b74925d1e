import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { type Environment, portNumber, readConfig } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { makeStateFolder, writeStateFile } from "#shared/process/state-folder.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { loginKey } from "#shared/protocol/login.ts";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import type { ChatSite } from "./chat-client.ts";
import { baseUrlOf, findKey, readKey, siteUrl } from "./find-gateway.ts";
import { ownFile, placesOf } from "./places.ts";
import { readKept, upFiles } from "./up-state.ts";

/** The keys that `trunkline login` got for this user, in a file of theirs. */

const login = loginKey.extend({ site: z.url() });
export type Login = Readonly<z.output<typeof login>>;

export function loginsFile(environment: Environment): string {
  return ownFile(placesOf(environment), "logins.json");
}

/** Returns the logins of this user, the latest last. */
export function readLogins(environment: Environment): readonly Login[] {
  const file = loginsFile(environment);
  const text = readKept(file);
  const read = z.array(login).safeParse(text === "" ? [] : jsonIn(text));
  if (read.success) return read.data;
  throw new StartFailure(exitCodes.config, `${file} holds no logins: move it away, and log in again.`);
}

export function writeLogins(environment: Environment, logins: readonly Login[]): void {
  const file = loginsFile(environment);
  const setting = process.platform === "win32" ? "APPDATA" : "XDG_CONFIG_HOME";
  makeStateFolder(dirname(file), setting);
  writeStateFile(file, `${JSON.stringify(logins, null, 2)}\n`, setting);
}

const place = keyStoreSettings
  .pick({ stateDir: true })
  .extend({ baseUrl: siteUrl.optional(), port: portNumber.optional() });
/** Settings that name a key, or a place that has or issues one. */
const others = ["KEY", "KEY_FILE", "ADMIN_KEY", "ADMIN_KEY_FILE", "OPERATIONS_URL", "REDIS_URL", "REDIS_URL_FILE"];

/**
 * Returns the site and the key of the login that a command uses: that of the site that the command line or the environment names,
 * or else the latest. Undefined where the environment has a key or a store, and where nothing names a site but `trunkline up`
 * keeps a key here. `option` is the one that names another site.
 */
export function loginInUse(environment: Environment, named: string | undefined, option: string): ChatSite | undefined {
  if (others.some((name) => environment[`TRUNKLINE_${name}`])) return undefined;
  const { stateDir, baseUrl, port } = readConfig(place, environment);
  const url = named ?? baseUrl;
  const isUp = existsSync(resolve(stateDir, upFiles.apiKey));
  if (url === undefined ? isUp || port !== undefined : isUp && environment["TRUNKLINE_STATE_DIR"]) return undefined;
  const found = readLogins(environment).findLast(({ site }) => url === undefined || site === new URL(url).origin);
  if (found === undefined) return undefined;
  const { token: key } = readKey("model", found.key, loginsFile(environment));
  return { baseUrl: baseUrlOf(environment, url ?? found.site), key, option };
}

/** Returns the site of a command that calls models, and its key. */
export function siteAtHand(environment: Environment, named: string | undefined, option: string): ChatSite {
  const used = loginInUse(environment, named, option);
  return used ?? { baseUrl: baseUrlOf(environment, named), key: findKey("model", environment).token, option };
}
