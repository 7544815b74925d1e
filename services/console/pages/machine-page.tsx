import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ModelListing } from "#shared/protocol/model.ts";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { to } from "../address.ts";
import { packageCommand } from "#shared/protocol/site-package.ts";
import { useAnswer } from "../admin-api.ts";
import { LinkButton } from "../forms.tsx";
import { fleet, inMemory, stale } from "../live.ts";
import { drainWords, isOutdated } from "../machine-words.ts";
import { CopyText, type Fact, Facts, FaultNotice, Notice, Page, Section } from "../parts.tsx";
import { numberText, sizeText, windowText } from "../quantity.ts";
import { memoryText } from "../model-rows.ts";
import { Remedy } from "../remedies.tsx";
import { gatewayVersion, mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Age, Badge, Badges, Bar, ModelLink, Name, Names, Time } from "../values.tsx";
import { MachineActions } from "./machine-actions.tsx";
import { AgentVersion, MachineMemory, MachineSlots, MachineState, MachineTokens } from "./machine-values.tsx";
import { useOfferActions } from "./offer-actions.tsx";
import { Pulls } from "./pulls.tsx";

export function OneMachine({ name }: { readonly name: string }) {
  const records = useAnswer("GET /machines", {});
  const seen = fleet.value?.data.find(({ machine }) => machine === name);
  const record = records.answer?.data.find(({ machine }) => machine === name);
  const isKnown = seen !== undefined || record !== undefined;
  const actions = <MachineActions key={name} machine={name} record={record} />;
  return (
    <Page title={name} actions={mayChange() && isKnown && records.answer !== undefined && actions}>
      <FaultNotice fault={records.fault} />
      {!isKnown && records.answer !== undefined && fleet.value !== undefined && (
        <Notice tone="warn">
          No machine of this name is known. <a href={to(["machines"])}>See all machines</a>
        </Notice>
      )}
      {seen !== undefined && <Seen machine={seen} />}
      {record !== undefined && <RecordFacts record={record} />}
      {isKnown && <ModelsOf name={name} />}
      <p class="actions">
        <LinkButton text="Requests of this machine" href={to(["requests"], { machine: name })} />
        <LinkButton text="Failed requests" href={to(["requests"], { machine: name, outcome: "failed" })} />
      </p>
    </Page>
  );
}

function Seen({ machine }: { readonly machine: ShownFleetMachine }) {
  const { heard_ms_ago: heardMsAgo, state_ms_ago: stateMsAgo, last_fault: last, memory, connection, why } = machine;
  const heardAt = fleet.value?.heardAt ?? 0;
  const left = drainWords([machine]);
  const heard = [heardMsAgo === null ? "never" : [<Age sinceMs={heardAt - heardMsAgo} />, " ago"]];
  const facts: readonly Fact[] = [
    [
      "State",
      [<MachineState machine={machine} />, stateMsAgo != null && [" for ", <Age sinceMs={heardAt - stateMsAgo} />]],
    ],
    ["Last heard", heardMsAgo !== null && machine.status === "present" && !stale.value ? "now" : heard],
    ["Model server", machine.runtime],
    ["Slots in use", <MachineSlots machine={machine} />],
    ["Waiting", `${machine.queued} of ${machine.queue_max} places`],
    ["Tokens a second, last minute", <MachineTokens machine={machine} />],
    ["Memory in use", <MachineMemory machine={machine} />],
    ["Loading", memory?.loading && <Loading load={memory.loading} />],
    ["Disk for models", memory?.disk_free_mb && `${sizeText(memory.disk_free_mb)} free`],
    ["Keeps in memory", memory && memory.keeps.length > 0 && <Keeps keeps={memory.keeps} />],
    ["Agent version", <AgentVersion machine={machine} />],
    ["Started", machine.epoch && <Started epoch={machine.epoch} />],
    ["Jobs of this gateway", numberText(machine.open_jobs)],
    ["Connected", connection && connections[connection]],
    ["Last failure", last ? <LastFault last={last} heardAt={heardAt} /> : "none at this gateway"],
  ];
  return (
    <Section title="As this gateway sees it">
      {left !== undefined && <Notice tone={left.startsWith("Empty") ? "good" : "plain"}>{left}.</Notice>}
      <Pulls isShown={(_, at) => at === machine.machine} />
      <Update machine={machine} />
      {why !== null && (
        <Notice tone={machine.takes_work ? "plain" : "warn"}>
          <bdi>{why}</bdi>
        </Notice>
      )}
      <Facts facts={facts.filter(hasValue)} />
    </Section>
  );
}

/** True for a fact that there is something to say of. */
function hasValue([, value]: Fact): boolean {
  return value != null && value !== false;
}

type ShownFault = NonNullable<ShownFleetMachine["last_fault"]>;

function LastFault({ last, heardAt }: { readonly last: ShownFault; readonly heardAt: number }) {
  const { code, model, ms_ago: msAgo, reason } = last;
  return (
    <>
      <Badge tone="warn">{code}</Badge> <Name>{model}</Name>, <Age sinceMs={heardAt - msAgo} /> ago
      {reason !== null && [": ", <bdi>{reason}</bdi>]}
    </>
  );
}

type ShownMemory = NonNullable<ShownFleetMachine["memory"]>;

function Keeps({ keeps }: { readonly keeps: ShownMemory["keeps"] }) {
  return keeps.map(({ model, state, why }) => (
    <div key={model}>
      <ModelLink id={model} />{" "}
      <small>
        {state}
        {why !== undefined && [": ", <bdi>{why}</bdi>]}
      </small>
    </div>
  ));
}

function Loading({ load }: { readonly load: NonNullable<ShownMemory["loading"]> }) {
  const far = `${load.percent} %, about ${load.seconds_left} s left`;
  return [<Name>{load.id}</Name>, " ", <Bar part={load.percent} whole={100} label={far} />, ` ${far}`];
}

/** Says how the agent of a machine comes to the version of this gateway. */
function Update({ machine: { version, machine } }: { readonly machine: ShownFleetMachine }) {
  const { answer: site } = useAnswer("GET /site", {});
  const newest = gatewayVersion();
  if (site === undefined || !isOutdated(version, newest)) return null;
  const { public_url: origin, certificate_sha256: pin } = site;
  return (
    <Notice tone="warn">
      <p>
        {newest} is newer than {version}, the version of its agent. Running answers finish while it changes.
      </p>
      {origin !== null && pin === null ? (
        <CopyText label={`Run on ${machine}`} text={`${packageCommand(origin, newest)} agent install`} />
      ) : (
        <p>
          Copy agent.tgz of {newest} to the machine (docs/machines.md, Certificates), and run there:{" "}
          <code>npx -y ./agent.tgz agent install</code>
        </p>
      )}
    </Notice>
  );
}

/** When the agent was started: its epoch begins with that time. */
function Started({ epoch }: { readonly epoch: string }) {
  const at = Number(epoch.split("-")[0]);
  return Number.isSafeInteger(at) ? <Time at={new Date(at).toISOString()} /> : null;
}

const connections = { tunnel: "over the site's own port", direct: "to the broker" } as const;

function RecordFacts({ record }: { readonly record: ShownMachineRecord }) {
  const { cordon, join_used_again: again, paired_at: pairedAt, models, labels } = record;
  const facts: readonly Fact[] = [
    ["State", record.state],
    ["Paired", pairedAt && [<Time at={pairedAt} />, record.paired_from && ` from ${record.paired_from}`]],
    ["Paired by", record.paired_by && <bdi>{record.paired_by}</bdi>],
    ["Models it may offer", models === null ? "all" : <Names of={models} />],
    ["Labels", labels && <Badges words={labels} />],
    ["External", record.external ? "yes: only routes that say so lead there" : null],
    [
      "Cordoned",
      cordon && [<bdi>{cordon.reason}</bdi>, ", ", <Time at={cordon.at} />, ", by ", <bdi>{cordon.by}</bdi>],
    ],
    ["Revoked", record.revoked_at && <Time at={record.revoked_at} />],
  ];
  return (
    <Section title="Pairing">
      {again !== null && (
        <Notice tone="bad">
          Somebody used the join line again from {again.from}, <Time at={again.at} />: somebody else has the line. It
          works for nobody any more.
        </Notice>
      )}
      <Facts facts={facts.filter(hasValue)} />
    </Section>
  );
}

const columns: readonly Column<ModelListing["data"][number]>[] = [
  ["model", ({ id }) => <ModelLink id={id} />, "", ({ id }) => id],
  ["model server", ({ runtime }) => runtime ?? "–", "wide", ({ runtime }) => runtime ?? null],
  ["window", (model) => windowText(model.context_window), "right", (model) => model.context_window],
  ["size", (model) => sizeText(model.size_mb), "right", (model) => model.size_mb],
  ["in memory", memoryText, "", memoryText],
];

function ModelsOf({ name }: { readonly name: string }) {
  const { answer, fault } = useAnswer("GET /models", { query: { machine: name } }, inMemory.value);
  const actions = [...columns, ...useOfferActions()];
  const waiting = fault?.message ?? (answer === undefined && "Asking the machine for its models…");
  return (
    <Section title="Models offered now">
      {waiting && <p class="quiet">{waiting}</p>}
      {answer !== undefined && (
        <Table
          name="models"
          caption={`Models of ${name}`}
          keyOf={({ id }) => id}
          rows={answer.data}
          empty={["This machine offers no model. ", <Remedy by="pull" />]}
          columns={actions}
        />
      )}
    </Section>
  );
}
