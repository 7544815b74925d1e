import { Argument, type Command } from "commander";
import { sessionOperations } from "#shared/admin/session-operations.ts";
import { keyId, type KeyId } from "#shared/keys/key-token.ts";
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

interface EndOptions {
  readonly all?: true;
  readonly key?: KeyId;
}

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
    .option("--key <id>", "end all of this key", readBy(keyId))
    .does(atGateway, async (port, id: string | undefined, { all, key }: EndOptions) => {
      if ([id, all, key].filter((each) => each !== undefined).length !== 1) {
        const message = "Name the session to end, or end all of a key with --key, or all of them with --all.";
        throw new StartFailure(exitCodes.usage, message);
      }
      const asked =
        id === undefined ? port.ask(endSessions, { query: { key } }) : port.ask(endSession, { params: { id } });
      const answer = await asked;
      const count = answer.ended.length;
      return { answer, text: `Ended ${count} ${count === 1 ? "session" : "sessions"}.` };
    });
  return sessions;
}
