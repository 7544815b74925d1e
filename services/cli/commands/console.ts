import { type Command, Option } from "commander";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import type { SessionRole } from "#shared/records/session-record.ts";
import { commandIn, type CliContext } from "../terminal/command-line.ts";
import { openBrowser } from "../terminal/open-browser.ts";
import { atGateway } from "../site/operations-port.ts";

interface Options {
  readonly viewer?: true;
  readonly operator?: true;
  readonly open?: true;
}

export function consoleCommand(context: CliContext): Command {
  const { stderr } = context;
  return commandIn("console", context)
    .description("print a link that signs a browser in to the console: it works once, for ten minutes")
    .addOption(new Option("--viewer", "for a session that reads and changes nothing").conflicts("operator"))
    .option("--operator", "for a session that changes machines, models and routes, and no keys")
    .option("--open", "open the link in the browser of this machine")
    .more(`
The session lasts 12 hours, and ends with the admin key that made the link. "trunkline sessions" lists and ends sessions.

Examples:
  trunkline console
  trunkline console --open
  trunkline console --viewer`)
    .does(atGateway, async (port, { viewer, operator, open }: Options) => {
      const role: SessionRole = viewer ? "viewer" : operator ? "operator" : "admin";
      const { url, expires_at } = await port.ask(sessionOperations.makeSignInLink, { body: { role } });
      if (open) openBrowser(url, () => stderr.write("No browser could be opened here: open the link yourself.\n"));
      return { answer: { url, role, expires_at }, text: url };
    });
}
