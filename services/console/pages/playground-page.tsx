import { to } from "../address.ts";
import { read } from "../admin-api.ts";
import { Chat, ChatPage } from "../chat.tsx";
import type { ChatWay } from "../chat-state.ts";
import { fleet } from "../live.ts";
import { Notice } from "../parts.tsx";
import { Remedy } from "../remedies.tsx";
import { baseUrl, mayChange } from "../session.ts";
import { MachineLink } from "../values.tsx";

const way: ChatWay = { recordOf: (id) => read("GET /requests/{id}", { params: { id } }) };

export function Playground() {
  const remedy = <Remedy by={fleet.value?.data.length === 0 ? "pair" : "pull"} />;
  return (
    <ChatPage baseUrl={baseUrl()} keyLink={<a href={to(["keys"], { issue: "new" })}>Issue a key</a>}>
      {mayChange() ? (
        <Chat way={way} machine={MachineLink} empty={["No machine offers a model that chats yet. ", remedy]} />
      ) : (
        <Notice>
          Viewers cannot chat, because a chat takes the time of a machine. Sign in as an operator or an admin.
        </Notice>
      )}
    </ChatPage>
  );
}
