import { useState } from "preact/hooks";
import type { ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownModel } from "#shared/protocol/model.ts";
import { query, setQuery, to } from "../address.ts";
import { type ApiFault, faultOf, useAnswer, work } from "../admin-api.ts";
import { inMemory } from "../live.ts";
import { Choice, Confirm, TextField } from "../forms.tsx";
import { Badge, type Column, FaultNotice, MachineLink, Name, Notice, orDash, Page, Table } from "../parts.tsx";
import { memoryText } from "../model-rows.ts";
import { msText, numberText, sizeText, windowText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { KeptModel } from "./kept-model.tsx";
import { ModelBadges } from "./model-badges.tsx";

export function OneModel({ id }: { readonly id: string }) {
  const { answer, fault } = useAnswer("GET /models", {}, inMemory.value);
  const answered = useAnswer("GET /route", { query: { model: id } });
  const offers = answer?.data.filter((each) => each.id === id) ?? [];
  return (
    <Page
      title={id}
      about={offers.length > 0 && <ModelBadges offers={offers} />}
      actions={
        answered.answer?.refusal === null && (
          <a class="button" href={to(["playground"], { model: id })}>
            Chat with it
          </a>
        )
      }
    >
      <FaultNotice fault={fault} />
      {answer !== undefined && <Offers id={id} offers={offers} />}
      {answer !== undefined && <KeptModel id={id} />}
      <Asked id={id} canEmbed={offers.some(({ capabilities }) => capabilities.embedding && !capabilities.completion)} />
      <p class="actions">
        <a class="button" href={to(["requests"], { model: id })}>
          Its requests
        </a>
      </p>
    </Page>
  );
}

function Offers({ id, offers }: { readonly id: string; readonly offers: readonly ShownModel[] }) {
  const columns: readonly Column<ShownModel>[] = [
    {
      name: "machine",
      cell: ({ machine }) => <MachineLink name={machine} />,
    },
    { name: "model server", cell: ({ runtime }) => runtime ?? "–" },
    { name: "window", right: true, cell: ({ context_window: tokens }) => `${windowText(tokens)} tokens` },
    { name: "size", right: true, cell: ({ size_mb: mb }) => sizeText(mb) },
    { name: "profile", wide: true, cell: ({ runtime_profile: profile }) => profile },
    { name: "in memory", cell: memoryText },
    {
      name: "load takes",
      right: true,
      wide: true,
      cell: ({ load_seconds: seconds }) => (seconds ? `${numberText(seconds)} s` : "–"),
    },
    ...(mayChange() ? [{ name: "actions", cell: (offer: ShownModel) => <OfferActions offer={offer} /> }] : []),
  ];
  return (
    <section>
      <h2>On these machines</h2>
      <Table
        caption={`Machines with ${id}`}
        columns={columns}
        rows={offers}
        keyOf={({ machine }) => machine}
        empty="No machine offers it at this moment."
      />
    </section>
  );
}

/** Loads, unloads and removes a model on one machine. The machine's owner permits each of them, or does not. */
function OfferActions({ offer: { id, machine, loaded } }: { readonly offer: ShownModel }) {
  const [status, setStatus] = useState("");
  const [fault, setFault] = useState<ApiFault>();
  const act = async (action: "load" | "unload" | "remove"): Promise<void> => {
    setFault(undefined);
    setStatus("The machine is asked…");
    const sent = { params: { machine, action }, body: { model: id } };
    await work(sent, { onLine: (line) => setStatus(line.status) }).catch((error: unknown) => setFault(faultOf(error)));
    setStatus("");
  };
  return (
    <>
      <div class="actions">
        {loaded !== true && (
          <button type="button" onClick={() => void act("load")}>
            Load
          </button>
        )}
        {loaded === true && (
          <button type="button" onClick={() => void act("unload")}>
            Unload
          </button>
        )}
        <Confirm
          action="Remove"
          question={
            <>
              It is deleted from the disk of <Name>{machine}</Name>, and stays on others.
            </>
          }
          onDo={() => act("remove")}
        />
      </div>
      {status !== "" && <small role="status">{status}</small>}
      <FaultNotice fault={fault} />
    </>
  );
}

const ranks: readonly Column<ShownRouteMachine>[] = [
  { name: "asked", cell: ({ rank }) => (rank === null ? <span class="quiet">not</span> : `${rank}.`) },
  {
    name: "machine",
    cell: ({ machine, model }) => (
      <>
        <MachineLink name={machine} />
        {model && (
          <small>
            {" "}
            as <Name>{model}</Name>
          </small>
        )}
      </>
    ),
  },
  { name: "why", cell: ({ why }) => <bdi>{why ?? "nothing is against it"}</bdi> },
  { name: "free slots", right: true, cell: ({ free_slots: free, slots }) => `${free}/${slots}` },
  { name: "waiting", right: true, cell: ({ queued }) => queued },
  {
    name: "tokens/s",
    right: true,
    wide: true,
    cell: ({ tokens_per_second: speed }) => orDash(speed, numberText),
  },
  {
    name: "first token",
    right: true,
    wide: true,
    cell: ({ first_token_ms: ms }) => (ms === null ? "not measured" : msText(ms)),
  },
  {
    name: "cost",
    right: true,
    cell: ({ cost_ms: cost }) => (cost ? <span title={costTitle(cost)}>{msText(cost.total)}</span> : "–"),
  },
];

function costTitle(cost: NonNullable<ShownRouteMachine["cost_ms"]>): string {
  return Object.entries(cost)
    .flatMap(([part, ms]) => (part === "total" || ms == null ? [] : [`${part} ${msText(ms)}`]))
    .join(", ");
}

const kinds = [
  ["chat", "chat"],
  ["complete", "completion"],
  ["embed", "embeddings"],
] as const;

/** The machines that a request of this kind would be offered to now, as `trunkline route` tells. */
function Asked({ id, canEmbed }: { readonly id: string; readonly canEmbed: boolean }) {
  const given = query.value;
  const kind = kinds.find(([each]) => each === given.get("kind"))?.[0] ?? (canEmbed ? "embed" : "chat");
  const needs = given.get("needs") ?? "";
  const tokens = given.get("tokens") ?? "";
  const { answer, fault } = useAnswer("GET /route", {
    query: {
      model: id,
      kind,
      tools: String(needs.includes("tools")),
      vision: String(needs.includes("vision")),
      prompt_tokens: /^\d+$/.test(tokens) ? tokens : undefined,
    },
  });
  return (
    <section>
      <h2>Who would be asked now</h2>
      <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="The request">
        <Choice label="Request" value={kind} onChoose={(value) => setQuery("kind", value)} options={kinds} />
        <Choice
          label="With"
          value={needs}
          onChoose={(value) => setQuery("needs", value)}
          options={[
            ["", "text alone"],
            ["tools", "tools"],
            ["vision", "images"],
            ["tools vision", "tools and images"],
          ]}
        />
        <TextField
          label="Prompt, in tokens"
          type="number"
          value={tokens}
          onText={(text) => setQuery("tokens", text)}
          placeholder="any"
        />
      </form>
      <FaultNotice fault={fault} />
      {answer?.targets && (
        <p>
          The route of this name leads to{" "}
          {answer.targets.map((target) => (
            <>
              <Name key={target}>{target}</Name>{" "}
            </>
          ))}
        </p>
      )}
      {answer?.refusal && (
        <Notice tone="warn">
          A request would end in <Badge tone="warn">{answer.refusal.code}</Badge> {answer.refusal.message}
        </Notice>
      )}
      {answer !== undefined && (
        <Table
          caption="Machines in their order"
          columns={ranks}
          rows={answer.machines}
          keyOf={({ machine, model, rank }) => `${machine} ${model} ${rank}`}
          empty="No machine is known."
        />
      )}
    </section>
  );
}
