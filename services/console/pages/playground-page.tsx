import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import type { Model } from "#shared/protocol/model.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { query, to } from "../address.ts";
import { type ApiFault, faultOf, useRead } from "../admin-api.ts";
import { ask, beginChat, stopAnswer, type Turn, turns } from "../chat-state.ts";
import type { Message, Part } from "../chat-stream.ts";
import { Button, Field, QueryChoice } from "../forms.tsx";
import { Answered, FaultNotice, Notice, Page } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { MachineLink, Name } from "../values.tsx";
import { defaultOptions, OptionFields, parametersOf } from "./chat-options.tsx";

const options = signal(defaultOptions);

export function Playground() {
  const isBegun = turns.value.length > 0;
  return (
    <Page
      title="Playground"
      about="A chat with any model as clients get it: the same API, routing and limits."
      actions={isBegun && <Button text="New chat" onDo={beginChat} />}
    >
      {mayChange() ? <Chat /> : <Notice>A viewer's session runs no model: a chat takes the time of a machine.</Notice>}
    </Page>
  );
}

interface ModelList {
  readonly data: readonly Model[];
}

function Chat() {
  const list = useRead<ModelList>("/console/v1/models");
  return (
    <Answered of={list} waiting="Asking the machines for their models…">
      {({ data }) => <ChatWith models={data.filter(({ capabilities }) => capabilities.completion)} />}
    </Answered>
  );
}

function ChatWith({ models }: { readonly models: readonly Model[] }) {
  const chosen = query.value.get("model") ?? models[0]?.id;
  if (chosen === undefined) {
    return (
      <Notice>
        No model that chats is here yet. <a href={to(["machines"], { pair: "new" })}>Pair a machine</a>, or{" "}
        <a href={to(["models"], { pull: "new" })}>pull a model</a>.
      </Notice>
    );
  }
  const model = models.find(({ id }) => id === chosen);
  const names = model === undefined ? [chosen, ...models.map(({ id }) => id)] : models.map(({ id }) => id);
  return (
    <>
      <div class="stack">
        <QueryChoice name="model" label="Model" value={chosen} options={names} />
        <OptionFields options={options} />
      </div>
      {model?.owned_by === "trunkline-demonstration" && (
        <Notice>
          <Name>{chosen}</Name> is a demonstration: it always answers with the same text, and no language model runs.
        </Notice>
      )}
      <ol class="chat" aria-label="Conversation">
        {turns.value.map((turn, place) => (
          <OneTurn key={place} turn={turn} />
        ))}
      </ol>
      <Prompt model={chosen} takesImages={model?.capabilities.vision === true} />
    </>
  );
}

function Prompt({ model, takesImages }: { readonly model: string; readonly takesImages: boolean }) {
  const [text, setText] = useState("");
  const [images, setImages] = useState<readonly string[]>([]);
  const [fault, setFault] = useState<ApiFault>();
  const isRunning = turns.value.at(-1)?.state === "streaming";
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() === "" || isRunning) return;
    try {
      const pictures = images.map((url): Part => ({ type: "image_url", image_url: { url } }));
      const content = pictures.length === 0 ? text : [{ type: "text", text } as const, ...pictures];
      const asked: Message = { role: "user", content };
      void ask(asked, { model, system: options.value.system, parameters: parametersOf(options.value) });
      setText("");
      setImages([]);
      setFault(undefined);
    } catch (error) {
      setFault(faultOf(error));
    }
  };
  const attach = async (files: FileList | null): Promise<void> =>
    setImages(await Promise.all([...(files ?? [])].map(dataUrlOf)));
  return (
    <form class="prompt" onSubmit={submit}>
      <Field label="Message" hint="Enter sends it, Shift and Enter begin a line.">
        {(id, hintId) => (
          <textarea
            id={id}
            aria-describedby={hintId}
            rows={3}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
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

function OneTurn({ turn: { asked, model, answer, state, fault, record } }: { readonly turn: Turn }) {
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
            <Name>{model}</Name> is asked…
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
        {record !== undefined && <Figures record={record} />}
      </div>
    </li>
  );
}

/** A text with its fenced code in boxes. Nothing in it is markup. */
function Prose({ text }: { readonly text: string }) {
  const pieces = text.split(/^```[^\n]*\n?/m);
  return (
    <>
      {pieces.map((piece, place) =>
        place % 2 === 1 ? (
          <pre key={place} tabIndex={0} aria-label="Code">
            {piece}
          </pre>
        ) : (
          piece !== "" && (
            <p key={place} class="prose">
              {piece}
            </p>
          )
        ),
      )}
    </>
  );
}

function Figures({ record }: { readonly record: ShownRequest }) {
  const { id, machine, first_token_ms: firstMs, tokens_per_second: speed, cached_tokens: cached } = record;
  const parts = [
    firstMs !== null && `first token after ${msText(firstMs)}`,
    speed !== null && `${numberText(speed)} tokens a second`,
    `${numberText(record.completion_tokens)} tokens`,
    `prompt of ${numberText(record.prompt_tokens)}${cached === null ? "" : `, ${numberText(cached)} cached`}`,
  ];
  return (
    <small class="quiet">
      {machine !== null && [<MachineLink name={machine} />, " · "]}
      {parts.filter((part) => part !== false).join(" · ")} · <a href={to(["requests", id])}>its way</a>
    </small>
  );
}
