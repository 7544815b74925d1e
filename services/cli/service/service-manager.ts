import type { Environment } from "#shared/process/config.ts";

export interface ServicePlaces {
  /** The copies of the program, one folder for each installation. */
  readonly programs: string;
  readonly settingsFile: string;
  readonly stateDir: string;
  readonly definition: string;
  /** The agent's log. Undefined where the operating system keeps it. */
  readonly logFile?: string;
}

/** A command of the operating system. */
export interface Step {
  readonly argv: readonly [string, ...string[]];
  /** The remedy to tell when the command fails and the next one may follow. Empty for a failure of no importance. */
  readonly otherwise?: string;
  /** Time for which a failing command is repeated. */
  readonly patienceMs?: number;
}

/** The service manager of an operating system. It decides only; `install-service.ts` acts. */
export interface ServiceManager {
  readonly places: ServicePlaces;
  /**
   * Returns the definition of the service as the operating system reads it. `program` are the program and its arguments
   * before `agent`, with absolute paths; `settings` those of `places.settingsFile`, none of them a secret.
   */
  definition(program: Step["argv"], settings: Environment): Uint8Array;
  /** Starts the service as its definition says, now and from now on. Restarts a running service. */
  readonly start: readonly Step[];
  /** Stops the service, now and from now on. */
  readonly stop: readonly Step[];
  /** Follows when the definition was removed. */
  readonly afterRemoval: readonly Step[];
  /** Shows the log. Undefined where the log is a file. */
  readonly logs?: (wanted: { readonly lines: number; readonly follow: boolean }) => Step["argv"];
  /** Prints the state of the service. A text that matches `ended` shows that the agent does not run. */
  readonly state?: { readonly argv: Step["argv"]; readonly ended: RegExp };
  /** Says when the service runs. */
  readonly runs: string;
  /** True if the service runs as a user of its own, who cannot read the folders of people. */
  readonly isSealed: boolean;
}

/** The host on which a command runs, as far as a service manager depends on it. */
export interface HostFacts {
  readonly platform: NodeJS.Platform;
  /** True for root, and in an elevated console of Windows. */
  readonly isAdministrator: boolean;
  readonly userName: string;
  /** 0 on Windows, where users have no number. */
  readonly userId: number;
  readonly home: string;
  /** True if systemd is the init system. */
  readonly hasSystemd: boolean;
  readonly environment: Environment;
}

/** Escapes a text for XML. */
export function xmlText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
