import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Confirm } from "../dialogs.tsx";
import { mayChangeKeys, session } from "../session.ts";
import { browserText } from "../session-words.ts";
import type { Column } from "../table.tsx";
import { Badge, KeyName, Name, None, Time, useKeyNames } from "../values.tsx";
import { RecordList } from "./record-page.tsx";

type ShownSession = AnswerTo<"GET /sessions">["data"][number];

export function Sessions() {
  const list = useAnswer("GET /sessions", {});
  const names = useKeyNames();
  const own = session.value.state === "in" ? session.value.me.session?.id : undefined;
  const nameOf = ({ key }: ShownSession) => names.get(key) ?? key;
  const browserOf = ({ kind, user_agent: agent }: ShownSession) =>
    kind === "link" ? "a link that nobody has opened" : browserText(agent ?? "an unnamed browser");
  const columns: readonly Column<ShownSession>[] = [
    ["key", ({ key }) => <KeyName id={key} name={names.get(key)} />, "", nameOf],
    [
      "browser",
      (row) => (
        <>
          <bdi>{browserOf(row)}</bdi> {row.id === own && <Badge tone="good">this one</Badge>}
        </>
      ),
      "",
      browserOf,
    ],
    ["from", ({ address }) => (address === null ? <None /> : <Name>{address}</Name>), "wide", (row) => row.address],
    ["role", ({ role }) => role, "", ({ role }) => role],
    ["since", ({ created_at: at }) => <Time at={at} />, "", ({ created_at: at }) => at],
    ["until", ({ expires_at: at }) => <Time at={at} />, "wide", ({ expires_at: at }) => at],
  ];
  const endsOf = (rows: readonly ShownSession[]): Column<ShownSession> => [
    "actions",
    (row) => {
      const { id, key } = row;
      const ofKey = rows.filter((each) => each.key === key);
      return (
        <div class="actions">
          <Confirm
            action="End"
            object={`the session of ${nameOf(row)}`}
            effect={`The session ends at once, at all gateways (${browserOf(row)}).${id === own ? " This is your own session: sign in again afterwards." : ""}`}
            onDo={() => change("DELETE /sessions/{id}", { params: { id } })}
          />
          {ofKey.length > 1 && ofKey[0] === row && (
            <Confirm
              action={`End all ${ofKey.length}`}
              object={`sessions of ${nameOf(row)}`}
              effect="Every browser of the key is signed out at once, and its unopened links stop working. The key stays valid."
              onDo={() => change("DELETE /sessions", { query: { key } })}
            />
          )}
        </div>
      );
    },
  ];
  const { answer, fault } = list;
  const rows = answer?.data.toReversed() ?? [];
  return (
    <RecordList
      title="Sessions"
      about="The browsers that are signed in to this console, and the links that nobody has opened yet. A session lasts 12 hours and ends with its key."
      of={{ answer: answer && { ...answer, data: rows }, fault }}
      columns={mayChangeKeys() ? [...columns, endsOf(rows)] : columns}
      keyOf={({ id }) => id}
      empty="Nobody is signed in."
    />
  );
}
