import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { reasonOf } from "#shared/fault/fault.ts";
import type { NatsSite, NatsSiteFile } from "#shared/broker/nats-site.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { type CliCommand, commandIn, here, type CliContext } from "../terminal/command-line.ts";
import { alignedTable } from "../terminal/table-text.ts";

export function natsCommand(context: CliContext): CliCommand {
  const nats = commandIn("nats", context)
    .description("make the credentials and the configuration of a NATS server for a site with several gateways")
    .more("\nExample:\n  trunkline nats init ./nats");
  addInit(nats);
  return nats;
}

const uses: Readonly<Record<NatsSiteFile, string>> = {
  "nats.conf": "the configuration of NATS, which names NATS_TLS_CERT, NATS_TLS_KEY and NATS_JWT_DIR",
  "gateway.creds": "gateways: TRUNKLINE_NATS_CREDS",
  "machines.seed": "gateways: TRUNKLINE_NATS_SIGNING_KEY, as text or by a file; its holder can pose as any machine",
  "system.creds": "gateways: TRUNKLINE_NATS_SYSTEM_CREDS, by which they report second connections",
  "operator.seed": "keep it away from servers: it signs accounts, and no process of Trunkline takes it",
};

function addInit(nats: CliCommand): void {
  nats
    .sub("init", "make operator, accounts and keys in a folder, with a nats.conf that uses them")
    .argument("<folder>", "the folder for the files; made if it is missing")
    .more(`
Machines that were paired connect through a gateway, and hold no credential of NATS. A gateway makes one for each of
them with machines.seed. NATS needs no restart when a machine is paired, renamed or revoked.

No file is ever overwritten. A folder that is complete stays as it is. All files but nats.conf are secrets, readable by
their owner only.

Examples:
  trunkline nats init ./nats
  NATS_TLS_CERT=server.pem NATS_TLS_KEY=server.key NATS_JWT_DIR=./jwt nats-server --config ./nats/nats.conf`)
    .does(here, async ({ clock }, given: string) => {
      const folder = resolve(given);
      const found = filesIn(folder);
      const { makeNatsSite, natsSiteFiles } = await import("#shared/broker/nats-site.ts");
      const outcome = found.includes("nats.conf") ? "unchanged" : "made";
      if (outcome === "made") {
        const inTheWay = natsSiteFiles.find((name) => found.includes(name));
        if (inTheWay !== undefined) {
          throw new StartFailure(
            exitCodes.cannotCreate,
            `${folder} has a ${inTheWay} and no nats.conf, and nothing is overwritten: name an empty folder, or move that file away.`,
          );
        }
        writeFiles(folder, makeNatsSite(clock), natsSiteFiles);
      }
      const files = Object.fromEntries(
        filesIn(folder).flatMap((name) => (name in uses ? [[name, join(folder, name)]] : [])),
      );
      const rows = Object.entries(uses).filter(([name]) => name in files);
      const unchanged = `${folder} was made before, and nothing was changed.`;
      return {
        answer: { outcome, folder, files },
        text: alignedTable(["file", "use"], rows),
        remark: outcome === "made" ? `Made in ${folder}` : unchanged,
      };
    });
}

function filesIn(folder: string): readonly string[] {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return readdirSync(folder);
  } catch (cause) {
    throw cannotWrite(folder, cause);
  }
}

function writeFiles(folder: string, site: NatsSite, names: readonly NatsSiteFile[]): void {
  try {
    // NATS may run as another user, and its configuration holds no secret.
    for (const name of names) {
      const mode = name === "nats.conf" ? 0o644 : 0o600;
      writeFileSync(join(folder, name), site.files[name], { flag: "wx", mode });
    }
  } catch (cause) {
    throw cannotWrite(folder, cause);
  }
}

function cannotWrite(folder: string, cause: unknown): StartFailure {
  return new StartFailure(
    exitCodes.cannotCreate,
    `The files of NATS cannot be written in ${folder} (${reasonOf(cause)}): name a folder that this user may write.`,
    { cause },
  );
}
