import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { fleet, inMemory, stale } from "../live.ts";
import { Age, Badge, Bar, Facts, FaultNotice, ModelLink, Name, Notice, Page, Table, Time } from "../parts.tsx";
import { numberText, sizeText, windowText } from "../quantity.ts";
import { memoryText } from "../model-rows.ts";
import { mayChange } from "../session.ts";
import { MachineActions } from "./machine-actions.tsx";
import { MachineState } from "./machine-state.tsx";

export function OneMachine({ name }: { readonly name: string }) {
  const records = useAnswer("GET /machines", {});
  const seen = fleet.value?.data.find(({ machine }) => machine === name);
  const record = records.answer?.data.find(({ machine }) => machine === name);
  const isKnown = seen !== undefined || record !== undefined;
  return (
    <Page title={name} actions={mayChange() && record !== undefined && <MachineActions record={record} />}>
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
        <a class="button" href={to(["requests"], { machine: name })}>
          Its requests
        </a>
        <a class="button" href={to(["requests"], { machine: name, failed: "true" })}>
          Its failures
        </a>
      </p>
    </Page>
  );
}

function Seen({ machine }: { readonly machine: ShownFleetMachine }) {
  const { heard_ms_ago: heardMsAgo, last_fault: last, why } = machine;
  const heardAt = fleet.value?.heardAt ?? 0;
  return (
    <section>
      <h2>As this gateway sees it</h2>
      {why !== null && (
        <Notice tone={machine.takes_work ? "plain" : "warn"}>
          <bdi>{why}</bdi>
        </Notice>
      )}
      <Facts
        facts={[
          [
            "State",
            <>
              <MachineState machine={machine} />
              {machine.state_ms_ago != null && (
                <>
                  {" "}
                  for <Age sinceMs={heardAt - machine.state_ms_ago} />
                </>
              )}
            </>,
          ],
          [
            "Heard",
            heardMsAgo === null ? (
              "never"
            ) : machine.status === "present" && !stale.value ? (
              "now"
            ) : (
              <>
                <Age sinceMs={heardAt - heardMsAgo} /> ago
              </>
            ),
          ],
          ["Model server", machine.runtime],
          ["Slots in use", `${machine.running} of ${machine.slots}`],
          ["Waiting", `${machine.queued} of ${machine.queue_max} places`],
          ["Memory for models", machine.memory && <Memory memory={machine.memory} />],
          ["Disk for models", machine.memory?.disk_free_mb && `${sizeText(machine.memory.disk_free_mb)} free`],
          [
            "Keeps in memory",
            machine.memory && machine.memory.keeps.length > 0 && <Keeps keeps={machine.memory.keeps} />,
          ],
          ["Pulls", machine.memory && machine.memory.pulls.length > 0 && <Pulls pulls={machine.memory.pulls} />],
          ["Its agent", machine.version && `version ${machine.version}`],
          ["Started", machine.epoch && <Started epoch={machine.epoch} />],
          ["Jobs of this gateway", numberText(machine.open_jobs)],
          [
            "Connected",
            machine.connection === null || machine.connection === undefined ? null : connections[machine.connection],
          ],
          [
            "Last failure",
            last ? (
              <>
                <Badge tone="warn">{last.code}</Badge> <Name>{last.model}</Name>,{" "}
                <Age sinceMs={heardAt - last.ms_ago} /> ago
                {last.reason !== null && (
                  <>
                    : <bdi>{last.reason}</bdi>
                  </>
                )}
              </>
            ) : (
              "none at this gateway"
            ),
          ],
        ]}
      />
    </section>
  );
}

type ShownMemory = NonNullable<ShownFleetMachine["memory"]>;

function Keeps({ keeps }: { readonly keeps: ShownMemory["keeps"] }) {
  return keeps.map(({ model, state, why }) => (
    <div key={model}>
      <ModelLink id={model} />{" "}
      <small>
        {state}
        {why !== undefined && (
          <>
            : <bdi>{why}</bdi>
          </>
        )}
      </small>
    </div>
  ));
}

function Pulls({ pulls }: { readonly pulls: ShownMemory["pulls"] }) {
  return pulls.map(({ model, state, status, percent, totalMb }) => (
    <div key={model}>
      <Name>{model}</Name>{" "}
      <small>
        {state === "pulling" && percent !== undefined && totalMb !== undefined
          ? `${percent} % of ${sizeText(totalMb)}`
          : state}
        : <bdi>{status}</bdi>
      </small>
    </div>
  ));
}

function Memory({ memory }: { readonly memory: ShownMemory }) {
  const { total_mb: totalMb, free_mb: freeMb, loading } = memory;
  const text = `${sizeText(freeMb)} of ${sizeText(totalMb)} free`;
  return (
    <>
      <Bar part={totalMb - freeMb} whole={totalMb} label={text} /> {text}
      {loading && (
        <>
          ; <Name>{loading.id}</Name> is being loaded: {loading.percent} %, about {loading.seconds_left} s
        </>
      )}
    </>
  );
}

/** When the agent was started: its epoch begins with that time. */
function Started({ epoch }: { readonly epoch: string }) {
  const at = Number(epoch.split("-")[0]);
  return Number.isSafeInteger(at) ? <Time at={new Date(at).toISOString()} /> : null;
}

const connections = { tunnel: "over the site's own port", direct: "to the broker" } as const;

function RecordFacts({ record }: { readonly record: ShownMachineRecord }) {
  const { cordon, join_used_again: again } = record;
  return (
    <section>
      <h2>Its record</h2>
      {again !== null && (
        <Notice tone="bad">
          Its join line was used again from {again.from}, <Time at={again.at} />: somebody else has the line. It works
          for nobody any more.
        </Notice>
      )}
      <Facts
        facts={[
          ["Pairing", record.state],
          [
            "Paired",
            record.paired_at && (
              <>
                <Time at={record.paired_at} />
                {record.paired_from && <> from {record.paired_from}</>}
              </>
            ),
          ],
          ["Paired by", record.paired_by && <bdi>{record.paired_by}</bdi>],
          [
            "Models it may offer",
            record.models === null ? "all" : record.models.map((each) => <Name key={each}>{each}</Name>),
          ],
          [
            "Labels",
            record.labels && (
              <span class="badges">
                {record.labels.map((each) => (
                  <Badge key={each}>{each}</Badge>
                ))}
              </span>
            ),
          ],
          ["External", record.external ? "yes: only routes that say so lead there" : null],
          [
            "Cordoned",
            cordon && (
              <>
                <bdi>{cordon.reason}</bdi>, <Time at={cordon.at} />, by <bdi>{cordon.by}</bdi>
              </>
            ),
          ],
          ["Revoked", record.revoked_at && <Time at={record.revoked_at} />],
        ]}
      />
    </section>
  );
}

function ModelsOf({ name }: { readonly name: string }) {
  const { answer, fault } = useAnswer("GET /models", { query: { machine: name } }, inMemory.value);
  return (
    <section>
      <h2>Models it offers now</h2>
      {fault !== undefined && <p class="quiet">{fault.message}</p>}
      {answer === undefined && fault === undefined && <p class="quiet">The machine is asked for its models…</p>}
      {answer !== undefined && (
        <Table
          caption={`Models of ${name}`}
          keyOf={({ id }) => id}
          rows={answer.data}
          empty="It offers no model. Pull one there, or start a model server that has some."
          columns={[
            {
              name: "model",
              cell: ({ id }) => <ModelLink id={id} />,
            },
            { name: "model server", wide: true, cell: ({ runtime }) => runtime ?? "–" },
            { name: "window", right: true, cell: ({ context_window: tokens }) => windowText(tokens) },
            { name: "size", right: true, cell: ({ size_mb: mb }) => sizeText(mb) },
            { name: "in memory", cell: memoryText },
          ]}
        />
      )}
    </section>
  );
}
