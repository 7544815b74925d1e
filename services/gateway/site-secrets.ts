import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { keyStoreSettings } from "#shared/store/key-store-settings.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { SqliteKeyStore } from "#shared/store/sqlite-key-store.ts";
import { pepperFile } from "#shared/store/state-database.ts";
import { systemClock } from "#shared/process/clock.ts";
import { type Environment, isSecret, readConfig, secret, variableOf } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { makeStateFolder, writeStateFile } from "#shared/process/state-folder.ts";
import type { Backup } from "./backup.ts";

const text = z.string().optional();
const pepperSetting = "TRUNKLINE_KEY_PEPPER";
/** The settings that a site takes along so that its keys and machines go on working. The last four name files. */
const settings = z.object({
  keyPepper: secret(text),
  keyPepperAlso: secret(text),
  natsSigningKey: secret(text),
  natsCreds: text,
  natsSystemCreds: text,
  tlsCert: text,
  tlsKey: text,
});
const isText = new Map(Object.entries(settings.shape).map(([name, field]) => [variableOf(name), isSecret(field)]));

/** The text of secrets by the names of their settings, or of the settings that name their files. */
type NamedSecrets = Readonly<Record<string, string>>;

/** Reads the secrets that the environment names. A state folder has the pepper where the environment has none. */
export function readSecrets(environment: Environment): NamedSecrets {
  const { own } = settingsOf(environment);
  const given = Object.entries(readConfig(settings, environment));
  const secrets = given
    .map(([name, value]) => [variableOf(name), String(value)] as const)
    .map(([name, value]) => [name, isText.get(name) ? value : readFile(value)]);
  return { ...(existsSync(own) && { [pepperSetting]: readFile(own) }), ...Object.fromEntries(secrets) };
}

/**
 * Writes the secrets of a backup that are not configured into the state folder, and returns the settings that name them.
 * No file is overwritten. Throws a `StartFailure` if there is no pepper of the backup's keys.
 */
export async function withSecretsOf({ file, database }: Backup, environment: Environment): Promise<NamedSecrets> {
  const { keyPepper: pepper, keyPepperAlso: pepperAlso, redisUrl, stateDir, own } = settingsOf(environment);
  const named: Record<string, string> = {};
  for (const row of database.read("read secrets", (sql) => sql.all`SELECT name, value FROM extra`)) {
    const name = String(row["name"]);
    if (!isText.has(name) || environment[name] || environment[`${name}_FILE`]) continue;
    const secretFile = name === pepperSetting ? own : join(stateDir, name);
    makeStateFolder(stateDir);
    if (!existsSync(secretFile)) writeStateFile(secretFile, `${String(row["value"])}\n`);
    named[isText.get(name) ? `${name}_FILE` : name] = secretFile;
  }
  const current = pepper ?? (existsSync(own) ? pepperText.parse(readFile(own)) : undefined);
  const peppers = current && new Peppers(current, pepperAlso);
  const needed = await new SqliteKeyStore(database, { clock: systemClock }).peppers();
  if (needed.some((fingerprint) => peppers?.knows(fingerprint))) {
    return pepper || redisUrl === undefined ? named : { ...named, [`${pepperSetting}_FILE`]: own };
  }
  const fault = current ? `are under another pepper than that of ${pepper ? pepperSetting : own}` : "need a pepper";
  const message = `The keys in ${file} ${fault}: set ${pepperSetting} to that of their site, or make the backup with --secrets and restore it where no pepper is set, with an empty TRUNKLINE_STATE_DIR. Nothing was restored.`;
  throw new StartFailure(exitCodes.config, message);
}

function settingsOf(environment: Environment) {
  const { stateDir, ...store } = readConfig(keyStoreSettings, environment);
  return { ...store, stateDir: resolve(stateDir), own: pepperFile(resolve(stateDir)) };
}

function readFile(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new StartFailure(exitCodes.config, `The secret in ${file} cannot be read: let this user read it.`, { cause });
  }
}
