import type { ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownModel } from "#shared/protocol/model.ts";
import { query, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { inMemory } from "../live.ts";
import { Filters, LinkButton, QueryChoice, QueryField } from "../forms.tsx";
import { Answered, FaultNotice, Notice, Page, Section } from "../parts.tsx";
import { memoryText } from "../model-rows.ts";
import { msText, numberText, sizeText, windowText } from "../quantity.ts";
import { Remedy } from "../remedies.tsx";
import { type Column, Table } from "../table.tsx";
import { Badge, MachineLink, ModelBadges, Name, Names, None, orDash } from "../values.tsx";
import { KeptModel } from "./kept-model.tsx";
import { useOfferActions } from "./offer-actions.tsx";
import { Pulls } from "./pulls.tsx";

export function OneModel({ id }: { readonly id: string }) {
  const { answer, fault } = useAnswer("GET /models", {}, inMemory.value);
  const answered = useAnswer("GET /route", { query: { model: id } });
  const offers = answer?.data.filter((each) => each.id === id) ?? [];
  const canChat = answered.answer?.refusal === null;
  return (
    <Page
      title={id}
      about={offers.length > 0 && <ModelBadges offers={offers} />}
      actions={canChat && <LinkButton text="Chat" href={to(["playground"], { model: id })} />}
    >
      <FaultNotice fault={fault} />
      <Pulls isShown={({ model }) => model === id || model === `${id}:latest`} />
      {answer !== undefined && <Offers id={id} offers={offers} />}
      {answer !== undefined && <KeptModel id={id} />}
      <Asked id={id} canEmbed={offers.some(({ capabilities }) => capabilities.embedding && !capabilities.completion)} />
      <p class="actions">
        <LinkButton text="Requests of this model" href={to(["requests"], { model: id })} />
      </p>
    </Page>
  );
}

const offerColumns: readonly Column<ShownModel>[] = [
  ["machine", ({ machine }) => <MachineLink name={machine} />, "", ({ machine }) => machine],
  ["model server", ({ runtime }) => runtime ?? "–", "", ({ runtime }) => runtime ?? null],
  ["window", (offer) => `${windowText(offer.context_window)} tokens`, "right", (offer) => offer.context_window],
  ["size", (offer) => sizeText(offer.size_mb), "right", (offer) => offer.size_mb],
  ["profile", (offer) => offer.runtime_profile, "wide", (offer) => offer.runtime_profile],
  ["in memory", memoryText, "", memoryText],
  [
    "load time",
    ({ load_seconds: seconds }) => (seconds ? `${numberText(seconds)} s` : "–"),
    "right wide",
    ({ load_seconds: seconds }) => seconds ?? null,
  ],
];

function Offers({ id, offers }: { readonly id: string; readonly offers: readonly ShownModel[] }) {
  return (
    <Section title="Machines with this model">
      <Table
        name="machines"
        caption={`Machines with ${id}`}
        columns={[...offerColumns, ...useOfferActions()]}
        rows={offers}
        keyOf={({ machine }) => machine}
        empty={["No machine offers this model now. ", <Remedy by="pull" />]}
      />
    </Section>
  );
}

const ranks: readonly Column<ShownRouteMachine>[] = [
  ["order", ({ rank }) => (rank === null ? <None text="none" /> : `${rank}.`)],
  [
    "machine",
    ({ machine, model }) => (
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
    "",
    ({ machine }) => machine,
  ],
  ["why", ({ why }) => <bdi>{why ?? "can answer"}</bdi>, "", ({ why }) => why],
  ["free slots", ({ free_slots: free, slots }) => `${free}/${slots}`, "right", ({ free_slots: free }) => free],
  ["waiting", ({ queued }) => queued, "right", ({ queued }) => queued],
  ["tokens/s", (machine) => orDash(machine.tokens_per_second, numberText), "right wide"],
  ["first token", ({ first_token_ms: ms }) => (ms === null ? "not measured" : msText(ms)), "right wide"],
  ["cost", ({ cost_ms: cost }) => (cost ? <span title={costTitle(cost)}>{msText(cost.total)}</span> : "–"), "right"],
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
const needed = [
  ["", "text alone"],
  ["tools", "tools"],
  ["vision", "images"],
  ["tools vision", "tools and images"],
] as const;

/** The machines that a request of this kind would be offered to now, as `trunkline route` tells. */
function Asked({ id, canEmbed }: { readonly id: string; readonly canEmbed: boolean }) {
  const given = query.value;
  const kind = kinds.find(([each]) => each === given.get("kind"))?.[0] ?? (canEmbed ? "embed" : "chat");
  const needs = given.get("needs") ?? "";
  const tokens = given.get("tokens") ?? "";
  const asked = useAnswer("GET /route", {
    query: {
      model: id,
      kind,
      tools: String(needs.includes("tools")),
      vision: String(needs.includes("vision")),
      prompt_tokens: /^\d+$/.test(tokens) ? tokens : undefined,
    },
  });
  return (
    <Section title="Which machine gets the next request">
      <Filters label="The request">
        <QueryChoice name="kind" label="Request" value={kind} options={kinds} />
        <QueryChoice name="needs" label="With" value={needs} options={needed} />
        <QueryField name="tokens" label="Prompt, in tokens" type="number" value={tokens} placeholder="any" />
      </Filters>
      <Answered of={asked}>
        {({ targets, refusal, machines }) => (
          <>
            {targets && (
              <p>
                The route of this name leads to <Names of={targets} />
              </p>
            )}
            {refusal && (
              <Notice tone="warn">
                A request would end in <Badge tone="warn">{refusal.code}</Badge> {refusal.message}
              </Notice>
            )}
            <Table
              name="ranks"
              caption="Machines in their order"
              columns={ranks}
              rows={machines}
              keyOf={({ machine, model, rank }) => `${machine} ${model} ${rank}`}
              empty={["No machine is connected yet. ", <Remedy by="pair" />]}
            />
          </>
        )}
      </Answered>
    </Section>
  );
}
