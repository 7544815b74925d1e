import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { connectNats } from "#shared/broker/nats-broker.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { AgentConfig } from "../../agent/config.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { unknownSettings } from "#shared/process/setting-names.ts";
import { type Check, failed, type Finding, type DoctorContext, ok, skipped, warning } from "./run-checks.ts";
import { byteSize } from "../terminal/quantity-text.ts";

/** Checks that machines and sites have in common. */

export function settingsCheck(
  { environment, version }: DoctorContext,
  read: (environment: Environment) => void,
): Check {
  return {
    name: "settings",
    async look() {
      read(environment);
      const [unknown] = unknownSettings(environment);
      if (unknown !== undefined) return warning(`${unknown}.`, "Correct its name, or unset it.");
      return ok(`Trunkline ${version} on Node ${process.versions.node}; all settings can be read.`);
    },
  };
}

/** Free space below which a store fails soon, and below which a day of logs or one model file fills the disk. */
const freeBytesMin = 100_000_000;
const freeBytesWarned = 1_000_000_000;

/** Checks that a state folder can be written to by its owner alone, and that its disk has room. */
export function folderCheck(folder: string): Check {
  return {
    name: "state folder",
    async look() {
      if (!existsSync(folder)) return skipped(`${folder} is not there yet; the first start makes it.`);
      try {
        accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
      } catch {
        return failed(`This user cannot write to ${folder}.`, "Run this as the user of the service, or with sudo.");
      }
      const { bavail, bsize } = statfsSync(folder);
      const freeBytes = bavail * bsize;
      const free = `${byteSize(freeBytes)} free`;
      if (freeBytes < freeBytesMin) return failed(`The disk of ${folder} is full (${free}).`, "Make room on it.");
      if (isOpenToOthers(folder)) return openToOthers(folder, "700");
      if (freeBytes < freeBytesWarned)
        return warning(`The disk of ${folder} is nearly full (${free}).`, "Make room on it.");
      return ok(`${folder} can be written to (${free}).`);
    },
  };
}

/** True if users other than the owner may read a file or folder. Windows has access lists in place of modes. */
export function isOpenToOthers(path: string): boolean {
  return process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0;
}

export function openToOthers(path: string, mode: string): Finding {
  return warning(`Other users of this host may read ${path}.`, `Run: chmod ${mode} '${path}'`);
}

/** Earlier versions of NATS let a client do what its user may not. */
const natsVersionMin = [2, 12, 7] as const;
const silent = createLog({ level: "silent", name: "doctor" });

interface NatsRole {
  readonly config: Pick<AgentConfig, "natsUrl" | "natsCreds" | "natsSecurity">;
  readonly clock: Clock;
  /** Subjects that the process subscribes to and sends to, with tokens that nobody else has. */
  readonly subjects: { readonly publish: readonly string[]; readonly subscribe: readonly string[] };
  /** Patterns of subjects that the process can do without, each with the lack that follows. */
  readonly dispensable?: Readonly<Record<string, string>>;
}

/** Checks the connection to NATS: TLS, credential, size of messages, version and grants. */
export function natsChecks(role: NatsRole): readonly Check[] {
  const { natsUrl } = role.config;
  if (natsUrl === undefined) return [];
  return [
    {
      name: "nats",
      async look() {
        await using nats = await openNats(role);
        const { serverVersion } = nats.broker;
        const hosts = natsUrl.split(",").map((url) => URL.parse(url.trim())?.host);
        const told = `NATS ${serverVersion} at ${hosts.join(", ")} admits this credential`;
        if (!isBelow(serverVersion, natsVersionMin)) return ok(`${told}.`);
        return warning(
          `${told}, and is older than ${natsVersionMin.join(".")}.`,
          "Upgrade NATS: earlier versions have published ways around its grants.",
        );
      },
    },
    {
      name: "grants",
      needs: ["nats"],
      async look() {
        await using nats = await openNats(role);
        const { broker } = nats;
        const lacking: string[] = [];
        for (const [pattern, lacks] of Object.entries(role.dispensable ?? {})) {
          broker.onDenied(pattern, (reason) => void lacking.push(`${reason}, so ${lacks}`));
        }
        for (const subject of role.subjects.subscribe) broker.subscribe(subject, () => undefined);
        for (const subject of role.subjects.publish) broker.publish(subject, new Uint8Array());
        await broker.flush().catch(() => undefined);
        // A denied publish is reported after the flush that it came before.
        await broker.flush().catch(() => undefined);
        const remedy = "Give its user that grant: infra/nats.conf shows all of them.";
        if (broker.trouble !== undefined) return failed(`${broker.trouble}.`, remedy);
        if (lacking[0] !== undefined) return warning(`${lacking[0]}.`, remedy);
        return ok("NATS allows all that this process sends and hears.");
      },
    },
  ];
}

async function openNats({ config, clock }: NatsRole) {
  const { natsUrl: url = "", natsCreds: credentialsFile, natsSecurity: security } = config;
  const broker = await connectNats({ url, credentialsFile, security, name: "trunkline doctor", clock, log: silent });
  return { broker, [Symbol.asyncDispose]: () => broker.close() };
}

export function isBelow(version: string, least: readonly number[]): boolean {
  const parts = version.split(/[.-]/).map(Number);
  const differing = least.findIndex((part, at) => parts[at] !== part);
  return differing >= 0 && (parts[differing] ?? 0) < (least[differing] ?? 0);
}
