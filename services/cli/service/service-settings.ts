import { readFileSync } from "node:fs";
import { posix, win32 } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { parseEnv } from "node:util";
import { reasonOf } from "#shared/fault/fault.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";

/** The names of an agent's settings, and those of them that are secrets. */
export interface AgentSettingNames {
  readonly all: readonly string[];
  readonly secret: ReadonlySet<string>;
}

/** Settings that are paths, besides those that end in `_FILE`. A service runs in another folder than its installer. */
const pathSettings = new Set([
  "NODE_EXTRA_CA_CERTS",
  "TRUNKLINE_ENGINE_DIR",
  "TRUNKLINE_GGUF",
  "TRUNKLINE_NATS_CA",
  "TRUNKLINE_NATS_CERT",
  "TRUNKLINE_NATS_CREDS",
  "TRUNKLINE_NATS_KEY",
]);
/** Variables of others that decide whether an agent reaches its site. */
const networkVariables = [
  "HTTPS_PROXY",
  "https_proxy",
  "NO_PROXY",
  "no_proxy",
  "NODE_EXTRA_CA_CERTS",
  "NODE_USE_SYSTEM_CA",
];
const stateDirSetting = "TRUNKLINE_STATE_DIR";

/**
 * Returns the settings that a service keeps from the environment of its installation, with absolute paths. Refuses
 * secrets: the service has none in its environment.
 */
export function settingsToKeep(
  environment: Environment,
  { names, folder, platform }: { names: AgentSettingNames; folder: string; platform: NodeJS.Platform },
): Record<string, string> {
  const { resolve } = platform === "win32" ? win32 : posix;
  const kept: Record<string, string> = {};
  const secret = names.all.find((name) => names.secret.has(name) && environment[name]);
  if (secret !== undefined) {
    throw secretRefused(secret, `put it into a file that only you may read, and name that file in ${secret}_FILE`);
  }
  const files = [...names.secret].map((name) => `${name}_FILE`);
  for (const name of [...names.all, ...files, ...networkVariables]) {
    const value = environment[name];
    if (!value || name === stateDirSetting || names.secret.has(name)) continue;
    const hasPassword = value.split(",").some((each) => URL.parse(each.trim())?.password);
    if (hasPassword) throw secretRefused(name, "leave the password out of its URL");
    if (/['\r\n]/.test(value)) {
      const message = `${name} holds a quote or a line break, which no settings file can: unset it.`;
      throw new StartFailure(exitCodes.config, message);
    }
    const isPath = pathSettings.has(name) || name.endsWith("_FILE");
    const absolute = (path: string): string => resolve(folder, path.trim());
    kept[name] = isPath ? value.split(",").map(absolute).join(",") : value;
  }
  return kept;
}

function secretRefused(name: string, remedy: string): StartFailure {
  const message = `A service keeps no secret in its settings, and ${name} is one: ${remedy}.`;
  return new StartFailure(exitCodes.config, message);
}

/** Reads a settings file: lines of `NAME=value` or `NAME='value'`. */
export function settingsIn(file: string): Record<string, string> {
  try {
    return Object.fromEntries(
      Object.entries(parseEnv(readFileSync(file, "utf8"))).map(([name, value = ""]) => [name, value]),
    );
  } catch (error) {
    throw new StartFailure(exitCodes.config, `The settings file ${file} cannot be read (${reasonOf(error)}).`);
  }
}

/**
 * Trusts the certificate authorities that the settings name. Node itself reads these variables at its start only, when
 * no settings file was read yet.
 */
export function trustAuthorities({ NODE_EXTRA_CA_CERTS: file, NODE_USE_SYSTEM_CA: system }: Environment): void {
  if (!file && system !== "1") return;
  const ofHost = system === "1" ? getCACertificates("system") : [];
  setDefaultCACertificates([...getCACertificates("default"), ...ofHost, ...(file ? [readFileSync(file, "utf8")] : [])]);
}

/** Returns a settings file as systemd and Node read it alike. */
export function settingsText(settings: Environment): string {
  const lines = Object.entries(settings)
    .filter(([, value]) => value)
    .map(([name, value]) => `${name}='${value}'\n`);
  return `# Settings of the agent's service: docs/settings.md lists them. No secret belongs here. Restart the service after a
# change: \`trunkline agent install\` keeps what is here, and adds the settings of its own environment.
${lines.join("")}`;
}
