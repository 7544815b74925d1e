import { resolve } from "node:path";
import type { Command } from "commander";
import { commandIn, type JsonOption, type CliContext } from "../terminal/command-line.ts";
import { alignedTable } from "../terminal/table-text.ts";
import { whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

export function backupCommand(context: CliContext): Command {
  const { environment, stdout, stderr } = context;
  return commandIn("backup", context)
    .description("write the keys, limits, machines, routes, usage and audit trail of a site to a file")
    .argument("<file>", "the file, for its owner only; replaced if it is there")
    .option("--secrets", "with the pepper, and the keys of NATS and the certificate that the settings name")
    .json()
    .more(`
The site may go on running. Seats of running requests are left out. Without --secrets the keys in the file work only at a
site that has their pepper. With --secrets the file opens the whole site to its reader.

Example:
  trunkline backup site.backup --secrets
${whichStoreHelp}`)
    .action(async (name: string, { secrets, json }: { readonly secrets?: true } & JsonOption) => {
      const { backUp } = await import("../../gateway/backup.ts");
      const { readSecrets } = await import("../../gateway/site-secrets.ts");
      const file = resolve(name);
      const taken = secrets ? readSecrets(environment) : {};
      const counts = await withKeyStore(context, { json }, (store) => backUp(store, { file, secrets: taken }));
      const names = Object.keys(taken);
      stdout.write(json ? `${JSON.stringify({ file, counts, secrets: names })}\n` : countsTable("written", counts));
      if (!json) stderr.write(`Secrets: ${names.join(", ") || "none (--secrets takes them along)"}\n`);
    });
}

export function restoreCommand(context: CliContext): Command {
  const { stdout, stderr } = context;
  return commandIn("restore", context)
    .argument("<file>", "the file that `trunkline backup` made")
    .option("--replace", "remove everything that the store has")
    .json()
    .more(`
A damaged file is refused before anything is changed. Gateways that run on the store follow within a second; while Redis is
restored they are not ready. Keys and machines that the store has as revoked stay revoked. Other changes since the backup
are lost. Secrets of the backup go into TRUNKLINE_STATE_DIR where no setting has them, and the settings are printed.

Examples:
  trunkline restore site.backup
  TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379 trunkline restore site.backup
${whichStoreHelp}`)
    .action(async (name: string, { replace = false, json }: { readonly replace?: boolean } & JsonOption) => {
      const { restore, withBackup } = await import("../../gateway/backup.ts");
      const { withSecretsOf } = await import("../../gateway/site-secrets.ts");
      await withBackup(resolve(name), async (backup) => {
        const settings = await withSecretsOf(backup, context.environment);
        const environment = { ...context.environment, ...settings };
        const restored = await withKeyStore({ ...context, environment }, { json }, (store) =>
          restore(store, backup, { replaces: replace }),
        );
        const { counts, revoked } = restored;
        stdout.write(json ? `${JSON.stringify({ ...restored, settings })}\n` : countsTable("restored", counts));
        if (json) return;
        for (const [setting, file] of Object.entries(settings)) stdout.write(`${setting}=${file}\n`);
        if (revoked.length > 0) stderr.write(`Revoked since the backup, and revoked again: ${revoked.join(", ")}\n`);
      });
    });
}

function countsTable(verb: string, counts: Readonly<Record<string, number>>): string {
  const rows = Object.entries(counts).map(([kind, count]) => [kind, String(count)]);
  return alignedTable(["records", verb], rows, { right: [verb] });
}
