/** A chat with a model: the conversation, its parameters and the field for the next message. */
import { signal } from "@preact/signals";
import type { ComponentChildren, FunctionComponent } from "preact";
import { useState } from "preact/hooks";
import type { OwnRequest } from "#shared/admin/member-operations.ts";
import { moneyText } from "#shared/money/money.ts";
import type { Model } from "#shared/protocol/model.ts";
import { query, setQuery, to } from "./address.ts";
import { type ApiFault, faultOf, useRead } from "./admin-api.ts";
import { samplesOf } from "./chat-samples.ts";
import { ask, beginChat, type ChatWay, draft, stopAnswer, type Turn, turns, noDraft } from "./chat-state.ts";
import type { Message, Part } from "./chat-stream.ts";
import { currency } from "./currency.ts";
import { Dialog, WindowButton } from "./dialogs.tsx";
import { splitFences } from "./fences.ts";
import { useEndInView } from "./follow-end.ts";
import { Button, Field, TextField } from "./forms.tsx";
import { defaultOptions, OptionFields, parametersOf } from "./pages/chat-options.tsx";
import { Answered, CopyText, FaultNotice, Notice, Page } from "./parts.tsx";
import { msText, numberText } from "./quantity.ts";
import { Name } from "./values.tsx";

const options = signal(defaultOptions);

interface ChatPageProps {
  readonly baseUrl: string;
  /** The link to the page that makes a key. */
  readonly keyLink: ComponentChildren;
  readonly children: ComponentChildren;
}

export function ChatPage({ baseUrl, keyLink, children }: ChatPageProps) {
  const last = turns.value.at(-1);
  return (
    <Page
      title="Playground"
      about="Chat with a model as a client does: through the same API, routing and limits."
      actions={
        last !== undefined && (
          <>
            <WindowButton
              text="Copy as code"
              value="code"
              window={(close) => (
                <Dialog title="This conversation as code" onClose={close}>
                  <p>
                    The code sends the latest message with the conversation before it. Set the environment variable
                    TRUNKLINE_KEY to an API key first. {keyLink}
                  </p>
                  {Object.entries(samplesOf(last.request, baseUrl)).map(([name, code]) => (
                    <CopyText key={name} label={name} text={code} />
                  ))}
                </Dialog>
              )}
            />
            <Button text="New chat" onDo={beginChat} />
          </>
        )
      }
    >
      {children}
    </Page>
  );
}

interface ChatProps {
  readonly way: ChatWay;
  /** Stands in place of the chat while no model chats. */
  readonly empty: ComponentChildren;
  /** Shows the machine that answered, for those who see machines. */
  readonly machine?: FunctionComponent<{ readonly name: string }> | undefined;
}

export function Chat(props: ChatProps) {
  const list = useRead<{ readonly data: readonly Model[] }>("/console/v1/models", 0, props.way.key);
  return (
    <Answered of={list} waiting="Asking the machines for their models…">
      {({ data }) => <ChatWith {...props} models={data.filter(({ capabilities }) => capabilities.completion)} />}
    </Answered>
  );
}

function ChatWith({ models, empty, way, machine }: ChatProps & { readonly models: readonly Model[] }) {
  useEndInView(turns.value, turns.value.length);
  const chosen = query.value.get("model") ?? models[0]?.id;
  if (chosen === undefined) return <Notice>{empty}</Notice>;
  const model = models.find(({ id }) => id === chosen);
  return (
    <>
      <OptionFields options={options} />
      {model?.owned_by === "trunkline-demonstration" && (
        <Notice>
          <Name>{chosen}</Name> is a demonstration: it always answers with the same text, and runs no language model.
        </Notice>
      )}
      <ol class="chat" aria-label="Conversation">
        {turns.value.map((turn, place) => (
          <OneTurn key={place} turn={turn} machine={machine} />
        ))}
      </ol>
      <Prompt
        way={way}
        model={chosen}
        models={models.map(({ id }) => id)}
        takesImages={model?.capabilities.vision === true}
      />
    </>
  );
}

/** The field for the model. It empties when it is entered, so that every model is suggested. */
function ModelField({ model, models }: Pick<PromptProps, "model" | "models">) {
  const [typed, setTyped] = useState<string>();
  return (
    <TextField
      label="Model"
      value={typed ?? model}
      placeholder={model}
      suggest={{ of: models }}
      onFocus={() => setTyped("")}
      onText={(text) => {
        setTyped(text);
        if (models.includes(text)) setQuery("model", text);
      }}
      onTaken={() => {
        if (typed) setQuery("model", typed.trim());
        setTyped(undefined);
      }}
    />
  );
}

interface PromptProps extends Pick<ChatProps, "way"> {
  readonly model: string;
  readonly models: readonly string[];
  readonly takesImages: boolean;
}

function Prompt({ way, model, models, takesImages }: PromptProps) {
  const { text, images } = draft.value;
  const [fault, setFault] = useState<ApiFault>();
  const isRunning = turns.value.at(-1)?.state === "streaming";
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() === "" || isRunning) return;
    try {
      const pictures = images.map((url): Part => ({ type: "image_url", image_url: { url } }));
      const content = pictures.length === 0 ? text : [{ type: "text", text } as const, ...pictures];
      const asked: Message = { role: "user", content };
      const parameters = parametersOf(options.value);
      // Enter in the field of the model sends the message too, before this page was drawn with that model.
      void ask(asked, { model: query.value.get("model") ?? model, system: options.value.system, parameters }, way);
      draft.value = noDraft;
      setFault(undefined);
    } catch (error) {
      setFault(faultOf(error));
    }
  };
  const attach = async (files: FileList | null): Promise<void> =>
    void (draft.value = { ...draft.value, images: await Promise.all([...(files ?? [])].map(dataUrlOf)) });
  return (
    <form class="prompt" onSubmit={submit}>
      <Field label="Message" hint="Enter sends. Shift+Enter starts a new line.">
        {(id, attributes) => (
          <textarea
            id={id}
            {...attributes}
            rows={2}
            value={text}
            onInput={(event) => (draft.value = { ...draft.value, text: event.currentTarget.value })}
            onKeyDown={(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && submit(event)}
          />
        )}
      </Field>
      {takesImages && (
        <Field label="Images" hint={images.length > 0 ? `${images.length} attached` : undefined}>
          {(id) => (
            <input
              id={id}
              type="file"
              accept="image/*"
              multiple
              onChange={(event) => void attach(event.currentTarget.files)}
            />
          )}
        </Field>
      )}
      <FaultNotice fault={fault} />
      <div class="actions">
        <ModelField model={model} models={models} />
        {isRunning ? (
          <Button text="Stop" onDo={stopAnswer} />
        ) : (
          <button class="primary" disabled={text.trim() === ""}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}

function dataUrlOf(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result as string));
    reader.addEventListener("error", () => reject(new Error(`${file.name} cannot be read.`)));
    reader.readAsDataURL(file);
  });
}

function OneTurn({ turn, machine }: { readonly turn: Turn } & Pick<ChatProps, "machine">) {
  const { asked, model, answer, state, fault, record } = turn;
  const { text, thinking, calls, finish } = answer;
  const isSilent = state === "streaming" && text === "" && thinking === "" && calls.length === 0;
  return (
    <li>
      <div class="asked">
        {typeof asked.content === "string"
          ? asked.content
          : asked.content.map((part, place) =>
              part.type === "text" ? part.text : <img key={place} src={part.image_url.url} alt={`Image ${place}`} />,
            )}
      </div>
      <div class="answered" aria-live="polite" aria-busy={state === "streaming"}>
        {isSilent && (
          <p class="quiet">
            Waiting for <Name>{model}</Name>…
          </p>
        )}
        {thinking !== "" && (
          <details open={text === ""}>
            <summary>Thinking</summary>
            <p class="quiet prose">{thinking}</p>
          </details>
        )}
        {text !== "" && <Prose text={text} />}
        {calls.map((call, place) => (
          <pre key={place} tabIndex={0} aria-label={`Call of ${call.name}`}>
            {call.name}({call.arguments})
          </pre>
        ))}
        <FaultNotice fault={fault} />
        {state === "stopped" && <p class="quiet">Stopped.</p>}
        {finish === "length" && <p class="quiet">The answer ended at the length limit.</p>}
        {record !== undefined && <Figures record={record} machine={machine} />}
      </div>
    </li>
  );
}

/** A text with its fenced code in boxes to copy. Nothing in it is markup. */
function Prose({ text }: { readonly text: string }) {
  return splitFences(text).map((piece, place) =>
    piece.language === undefined ? (
      <p key={place} class="prose">
        {piece.text}
      </p>
    ) : (
      <CopyText key={place} label={piece.language || "code"} text={piece.text} />
    ),
  );
}

function Figures({ record, machine: Machine }: { readonly record: OwnRequest } & Pick<ChatProps, "machine">) {
  const { id, machine, first_token_ms: firstMs, tokens_per_second: speed, cached_tokens: cached, cost } = record;
  const parts = [
    firstMs !== null && `first token after ${msText(firstMs)}`,
    speed !== null && `${numberText(speed)} tokens a second`,
    `${numberText(record.completion_tokens)} tokens`,
    `prompt of ${numberText(record.prompt_tokens)}${cached === null ? "" : `, ${numberText(cached)} cached`}`,
    cost != null && moneyText(cost, currency.value),
  ];
  return (
    <small class="quiet">
      {Machine && machine !== null && [<Machine name={machine} />, " · "]}
      {parts.filter((part) => part !== false).join(" · ")} · <a href={to(["requests", id])}>What happened</a>
    </small>
  );
}
