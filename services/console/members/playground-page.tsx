import { query, to } from "../address.ts";
import { Chat, ChatPage } from "../chat.tsx";
import { Filters, QueryChoice } from "../forms.tsx";
import { Answered, Notice } from "../parts.tsx";
import { type OwnAnswer, readOwn, useOwn } from "./member-api.ts";
import { session } from "./session.ts";

const recordOf = (id: string) => readOwn("GET /requests/{id}", { params: { id } });
const keyLink = <a href={to([], { make: "new" })}>Make a key</a>;

export function OwnPlayground() {
  const keys = useOwn("GET /keys", {});
  return (
    <ChatPage baseUrl={session.value.state === "in" ? session.value.self.base_url : ""} keyLink={keyLink}>
      <Answered of={keys} waiting="Loading your keys…">
        {({ data }) => <ChatByKey keys={data.filter(({ state }) => state === "valid")} />}
      </Answered>
    </ChatPage>
  );
}

function ChatByKey({ keys }: { readonly keys: OwnAnswer<"GET /keys">["data"] }) {
  const chosen = keys.find(({ id }) => id === query.value.get("key")) ?? keys[0];
  if (chosen === undefined)
    return <Notice>A chat counts for one of your keys, and you have no valid one. {keyLink}</Notice>;
  const options = keys.map(({ id, name, team = "" }) => [id, `${name} (${team})`] as const);
  return (
    <>
      <Filters label="Key of the chat">
        <QueryChoice name="key" label="Key" value={chosen.id} options={options} />
      </Filters>
      <Chat
        key={chosen.id}
        way={{ key: chosen.id, recordOf }}
        empty="This key may call no model that chats and that machines offer now."
      />
    </>
  );
}
