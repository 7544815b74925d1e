import { Argument, type Command } from "commander";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import { sessionId } from "#shared/keys/session-token.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { commandIn, type CliContext, type JsonOption, readBy, widthOf } from "../terminal/command-line.ts";
import { asksGateway, givenOperations, type OperationsOptions } from "../site/operations-port.ts";
import { alignedTable } from "../terminal/table-text.ts";
import { utcTime } from "../terminal/quantity-text.ts";

const { listSessions, endSession, endSessions } = sessionOperations;

interface Options extends OperationsOptions, JsonOption {
  readonly all?: true;
}

export function sessionsCommand(context: CliContext): Command {
  const sessions = commandIn("sessions", context).description("list and end the sessions of the console");
  sessions.addCommand(listCommand(context), { isDefault: true }).addCommand(endCommand(context));
  return sessions;
}

function listCommand(context: CliContext): Command {
  const { stdout, stderr } = context;
  return commandIn("list", context)
    .description("list the browsers that are signed in, and the links that were not opened yet")
    .with(asksGateway())
    .action(async ({ json, ...given }: Options) => {
      const { data, unread } = await givenOperations(given, context).ask(listSessions, {});
      if (unread > 0) stderr.write(`Left out, since the gateway cannot read them: ${unread} sessions.\n`);
      if (json) return void stdout.write(`${JSON.stringify({ sessions: data })}\n`);
      if (data.length === 0) return void stdout.write("Nobody is signed in: `trunkline console` prints a link.\n");
      const rows = data.map((each) => [
        each.id,
        each.kind,
        each.role,
        each.key,
        utcTime(Date.parse(each.created_at)),
        utcTime(Date.parse(each.expires_at)),
        each.address ?? "-",
        onOneLine(each.user_agent ?? "-"),
      ]);
      const headings = ["id", "kind", "role", "key", "since", "until", "address", "browser"] as const;
      stdout.write(alignedTable(headings, rows, { wrap: ["browser"], widthMax: widthOf(stdout) }));
    });
}

function endCommand(context: CliContext): Command {
  const { stdout } = context;
  return commandIn("end", context)
    .description("end a session, or make a link useless, at all gateways at once")
    .addArgument(new Argument("[id]", "the session as `trunkline sessions` lists it").argParser(readBy(sessionId)))
    .option("--all", "end all of them")
    .with(asksGateway())
    .action(async (id: string | undefined, { all, json, ...given }: Options) => {
      if ((id === undefined) === (all === undefined)) {
        throw new StartFailure(exitCodes.usage, "Name the session to end, or end all of them with --all.");
      }
      const port = givenOperations(given, context);
      const answer = await (id === undefined ? port.ask(endSessions, {}) : port.ask(endSession, { params: { id } }));
      const count = answer.ended.length;
      stdout.write(json ? `${JSON.stringify(answer)}\n` : `Ended ${count} ${count === 1 ? "session" : "sessions"}.\n`);
    });
}
