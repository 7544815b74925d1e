import { useEffect, useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { markersOf, runningWords } from "#shared/requests/request-words.ts";
import type { ShownRunning } from "#shared/requests/running-request.ts";
import { type ApiFault, change, faultOf, read } from "../admin-api.ts";
import { Confirm } from "../dialogs.tsx";
import { FaultNotice, Notice, Section } from "../parts.tsx";
import { msText, numberText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Badge, type KeyNames, KeyName, MachineLink, Name, None, type Tone } from "../values.tsx";
import { Marks } from "./request-table.tsx";

/** The pause between an answer and the next question. */
const pauseMs = 1_000;

const tones: Readonly<Record<ShownRunning["state"], Tone>> = {
  waiting: "warn",
  loading: "warn",
  reading: "plain",
  answering: "good",
};

/** The requests that run at all gateways. They are asked for as long as a page shows them. */
export function Running({ names }: { readonly names: KeyNames }) {
  const [{ answer, fault }, setShown] = useState<RunningAnswer>({});
  useEffect(() => {
    const leaving = new AbortController();
    let next: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      const told = await read("GET /requests/running", {}, leaving.signal).then(
        (each) => ({ answer: each }),
        (error: unknown) => ({ fault: faultOf(error) }),
      );
      if (leaving.signal.aborted) return;
      setShown(told);
      next = setTimeout(() => void look(), pauseMs);
    };
    void look();
    return () => {
      leaving.abort();
      clearTimeout(next);
    };
  }, []);
  const { data = [], silent = [], left_out: leftOut = 0 } = answer ?? {};
  return (
    <Section
      title="Running"
      aside={answer && <span class="quiet">{numberText(data.length + leftOut)} now, the oldest first</span>}
    >
      <FaultNotice fault={fault} />
      {silent.length > 0 && (
        <Notice tone="warn">
          These gateways did not tell of their requests: <bdi>{silent.join(", ")}</bdi>. An older version cannot.
        </Notice>
      )}
      {leftOut > 0 && <Notice>{numberText(leftOut)} requests are not shown, since there are so many.</Notice>}
      <Table
        caption="Running requests"
        name="running"
        columns={columnsFor(names)}
        rows={data}
        keyOf={({ id }) => id}
        empty={answer === undefined ? "Loading the requests…" : "No request is running."}
      />
    </Section>
  );
}

interface RunningAnswer {
  readonly answer?: AnswerTo<"GET /requests/running">;
  readonly fault?: ApiFault;
}

function columnsFor(names: KeyNames): readonly Column<ShownRunning>[] {
  const all: Column<ShownRunning>[] = [
    ["running for", ({ age_ms: ms, id }) => <span title={id}>{msText(ms)}</span>, "", ({ age_ms: ms }) => ms],
    [
      "state",
      ({ state, tried }) => (
        <>
          <Badge tone={tones[state]}>{runningWords[state]}</Badge> <Marks words={markersOf(tried)} />
        </>
      ),
      "",
      ({ state }) => runningWords[state],
    ],
    ["tokens", ({ tokens }) => numberText(tokens), "right", ({ tokens }) => tokens],
    ["model", ({ model }) => (model === null ? <None /> : <Name>{model}</Name>), "", ({ model }) => model],
    [
      "machine",
      ({ machine }) => (machine === null ? <None /> : <MachineLink name={machine} />),
      "",
      ({ machine }) => machine,
    ],
    ["key", ({ key }) => <KeyName id={key} name={names.get(key)} />, "", ({ key }) => `${names.get(key) ?? ""} ${key}`],
    ["gateway", ({ gateway }) => <Name>{gateway}</Name>, "wide", ({ gateway }) => gateway],
    ["API", ({ path }) => <Name>{path}</Name>, "wide", ({ path }) => path],
  ];
  if (mayChange()) all.push(["", (request) => <CancelButton request={request} names={names} />]);
  return all;
}

function CancelButton({
  request: { id, key, model },
  names,
}: {
  readonly request: ShownRunning;
  readonly names: KeyNames;
}) {
  return (
    <div class="actions">
      <Confirm
        action="Cancel"
        dismiss="Let it run"
        object={`the request of ${names.get(key) ?? key} to ${model ?? "no model yet"}`}
        effect="Its client gets the error cancelled_by_operator. No other machine goes on with it, and the tokens so far are counted."
        isFinal
        onDo={() => change("POST /requests/{id}/cancel", { params: { id } })}
      />
    </div>
  );
}
