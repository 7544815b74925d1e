import { spawn } from "node:child_process";
import { type Command, Option } from "commander";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import type { SessionRole } from "#shared/records/session-record.ts";
import { commandIn, type CliContext, type JsonOption } from "../terminal/command-line.ts";
import { asksGateway, givenOperations, type OperationsOptions } from "../site/operations-port.ts";

interface Options extends OperationsOptions, JsonOption {
  readonly viewer?: true;
  readonly operator?: true;
  readonly open?: true;
}

export function consoleCommand(context: CliContext): Command {
  const { stdout, stderr } = context;
  return commandIn("console", context)
    .description("print a link that signs a browser in to the console: it works once, for ten minutes")
    .addOption(new Option("--viewer", "for a session that reads and changes nothing").conflicts("operator"))
    .option("--operator", "for a session that changes machines, models and routes, and no keys")
    .option("--open", "open the link in the browser of this machine")
    .with(
      asksGateway(`
The session lasts 12 hours, and ends with the admin key that made the link. "trunkline sessions" lists and ends sessions.

Examples:
  trunkline console
  trunkline console --open
  trunkline console --viewer
`),
    )
    .action(async ({ viewer, operator, open, json, ...given }: Options) => {
      const role: SessionRole = viewer ? "viewer" : operator ? "operator" : "admin";
      const port = givenOperations(given, context);
      const { url, expires_at: expiresAt } = await port.ask(sessionOperations.makeSignInLink, { body: { role } });
      stdout.write(json ? `${JSON.stringify({ url, role, expires_at: expiresAt })}\n` : `${url}\n`);
      if (open) openBrowser(url, () => stderr.write("No browser could be opened here: open the link yourself.\n"));
    });
}

const openers: Readonly<Record<string, readonly [command: string, ...options: string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

function openBrowser(url: string, onFailure: () => void): void {
  const [command, ...options] = openers[process.platform] ?? ["xdg-open"];
  const opened = spawn(command, [...options, url], { stdio: "ignore", detached: true });
  opened.once("error", onFailure);
  opened.unref();
}
