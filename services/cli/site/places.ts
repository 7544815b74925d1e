import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "#shared/process/config.ts";

/** The facts of a host that decide where a program keeps the configuration of its user. */
export interface Places {
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly environment: Environment;
}

export function placesOf(environment: Environment): Places {
  const { platform } = process;
  return { home: environment[platform === "win32" ? "USERPROFILE" : "HOME"] || homedir(), platform, environment };
}

/** Returns the folder in which programs keep their configuration. */
export function configFolder({ home, platform, environment }: Places): string {
  const { APPDATA, XDG_CONFIG_HOME } = environment;
  if (platform === "win32") return APPDATA || join(home, "AppData", "Roaming");
  return XDG_CONFIG_HOME || join(home, ".config");
}

/** Returns a file of Trunkline's own in that folder. */
export function ownFile(places: Places, name: string): string {
  return join(configFolder(places), "trunkline", name);
}
