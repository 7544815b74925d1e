import { resolve } from "node:path";
import { type CliCommand, commandIn, here, type JsonOption, type CliContext } from "../terminal/command-line.ts";
import { alignedTable } from "../terminal/table-text.ts";
import { onStore, whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

export function backupCommand(context: CliContext): CliCommand {
  return commandIn("backup", context)
    .description("write the keys, limits, machines, routes, usage and audit trail of a site to a file")
    .argument("<file>", "the file, for its owner only; replaced if it is there")
    .option("--secrets", "with the pepper, and the keys of NATS and the certificate that the settings name")
    .more(`
The site may go on running. Seats of running requests are left out. Without --secrets the keys in the file work only at a
site that has their pepper. With --secrets the file opens the whole site to its reader.

Example:
  trunkline backup site.backup --secrets
${whichStoreHelp}`)
    .does(onStore, async (store, name: string, { secrets }: { readonly secrets?: true }) => {
      const { backUp } = await import("../../gateway/backup.ts");
      const { readSecrets } = await import("../../gateway/site-secrets.ts");
      const file = resolve(name);
      const taken = secrets ? readSecrets(context.environment) : {};
      const counts = await backUp(store, { file, secrets: taken });
      const names = Object.keys(taken);
      const remark = `Secrets: ${names.join(", ") || "none (--secrets takes them along)"}`;
      return { answer: { file, counts, secrets: names }, text: countsTable("written", counts), remark };
    });
}

export function restoreCommand(context: CliContext): CliCommand {
  return commandIn("restore", context)
    .argument("<file>", "the file that `trunkline backup` made")
    .option("--replace", "remove everything that the store has")
    .more(`
A damaged file is refused before anything is changed. Gateways that run on the store follow within a second; while Redis is
restored they are not ready. Keys and machines that the store has as revoked stay revoked. Other changes since the backup
are lost. Secrets of the backup go into TRUNKLINE_STATE_DIR where no setting has them, and the settings are printed.

Examples:
  trunkline restore site.backup
  TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379 trunkline restore site.backup
${whichStoreHelp}`)
    .does(here, async (_, name: string, { replace = false, json }: RestoreOptions) => {
      const { restore, withBackup } = await import("../../gateway/backup.ts");
      const { withSecretsOf } = await import("../../gateway/site-secrets.ts");
      return withBackup(resolve(name), async (backup) => {
        const settings = await withSecretsOf(backup, context.environment);
        const environment = { ...context.environment, ...settings };
        const restored = await withKeyStore({ ...context, environment }, { json }, (store) =>
          restore(store, backup, { replaces: replace }),
        );
        const { counts, revoked } = restored;
        const lines = Object.entries(settings).map(([setting, file]) => `${setting}=${file}\n`);
        const remark = revoked.length > 0 ? `Revoked since the backup, and revoked again: ${revoked.join(", ")}` : "";
        return { answer: { ...restored, settings }, text: countsTable("restored", counts) + lines.join(""), remark };
      });
    });
}

interface RestoreOptions extends JsonOption {
  readonly replace?: boolean;
}

function countsTable(verb: string, counts: Readonly<Record<string, number>>): string {
  const rows = Object.entries(counts).map(([kind, count]) => [kind, String(count)]);
  return alignedTable(["records", verb], rows, { right: [verb] });
}
