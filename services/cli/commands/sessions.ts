import { Argument, type Command } from "commander";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import { sessionId } from "#shared/keys/session-token.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { commandIn, type CliContext, readBy } from "../terminal/command-line.ts";
import { atGateway } from "../site/operations-port.ts";
import { type TextColumn, tableOf } from "../terminal/table-text.ts";
import { utcTime } from "../terminal/quantity-text.ts";

const { listSessions, endSession, endSessions } = sessionOperations;

const columns: readonly TextColumn<AnswerTo<"GET /sessions">["data"][number]>[] = [
  ["id", ({ id }) => id],
  ["kind", ({ kind }) => kind],
  ["role", ({ role }) => role],
  ["key", ({ key }) => key],
  ["since", (session) => utcTime(session.created_at)],
  ["until", (session) => utcTime(session.expires_at)],
  ["address", ({ address }) => address ?? "-"],
  ["browser", (session) => session.user_agent ?? "-", "wrap"],
];

export function sessionsCommand(context: CliContext): Command {
  const sessions = commandIn("sessions", context).description("list and end the sessions of the console");
  sessions
    .command("list", { isDefault: true })
    .description("list the browsers that are signed in, and the links that were not opened yet")
    .does(atGateway, async (port) => {
      const { data, unread } = await port.ask(listSessions, {});
      return {
        answer: { sessions: data },
        text: (widthMax) =>
          tableOf(columns, data, { widthMax }) || "Nobody is signed in: `trunkline console` prints a link.",
        warning: unread > 0 ? `Left out, since the gateway cannot read them: ${unread} sessions.` : "",
      };
    });
  sessions
    .sub("end", "end a session, or make a link useless, at all gateways at once")
    .addArgument(new Argument("[id]", "the session as `trunkline sessions` lists it").argParser(readBy(sessionId)))
    .option("--all", "end all of them")
    .does(atGateway, async (port, id: string | undefined, { all }: { readonly all?: true }) => {
      if ((id === undefined) === (all === undefined)) {
        throw new StartFailure(exitCodes.usage, "Name the session to end, or end all of them with --all.");
      }
      const answer = await (id === undefined ? port.ask(endSessions, {}) : port.ask(endSession, { params: { id } }));
      const count = answer.ended.length;
      return { answer, text: `Ended ${count} ${count === 1 ? "session" : "sessions"}.` };
    });
  return sessions;
}
