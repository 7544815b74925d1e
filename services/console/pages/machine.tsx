import { useState } from "preact/hooks";
import type { z } from "zod";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ModelListing } from "#shared/protocol/model.ts";
import type { machineSchemas } from "../../gateway/operations/machine-operations.ts";
import { go, query, setQuery, to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { fleet, stale } from "../live.ts";
import {
  listIn,
  ActionForm,
  Age,
  Badge,
  Confirm,
  Dialog,
  Facts,
  FaultNotice,
  Name,
  Notice,
  Page,
  Table,
  TextField,
  Time,
} from "../parts.tsx";
import { numberText, sizeText, windowText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { MachineState } from "./machine-state.tsx";
import { PairDialog } from "./pair-machine.tsx";

type Record = z.output<typeof machineSchemas.MachineRecord>;

export function OneMachine({ name }: { readonly name: string }) {
  const records = useAnswer<z.output<typeof machineSchemas.MachineRecordList>>("/machines");
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
          ["State", <MachineState machine={machine} />],
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

const connections = { tunnel: "over the site's own port", direct: "to the broker" } as const;

function RecordFacts({ record }: { readonly record: Record }) {
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

function MachineActions({ record }: { readonly record: Record }) {
  const { machine, state } = record;
  const at = `/machines/${encodeURIComponent(machine)}`;
  const open = query.value.get("do");
  const close = (): void => setQuery("do", undefined);
  const isPaired = state === "paired" || state === "cordoned";
  return (
    <>
      {state === "paired" && (
        <button type="button" onClick={() => setQuery("do", "cordon")}>
          Cordon
        </button>
      )}
      {state === "cordoned" && (
        <Confirm
          action="Uncordon"
          working="Uncordoning…"
          danger={false}
          question="It gets new jobs again."
          onDo={() => change("POST", `${at}/uncordon`)}
        />
      )}
      {isPaired && (
        <button type="button" onClick={() => setQuery("do", "rename")}>
          Rename
        </button>
      )}
      <button type="button" onClick={() => setQuery("do", "models")}>
        Allowed models
      </button>
      {!isPaired && (
        <button type="button" class="primary" onClick={() => setQuery("do", "pair")}>
          Pair
        </button>
      )}
      {isPaired && (
        <Confirm
          action="Revoke"
          working="Revoking…"
          question="Its key is taken back for good, at all gateways, and its jobs end. To come back it has to be paired anew."
          onDo={() => change("POST", `${at}/revoke`)}
        />
      )}
      {state === "unpaired" && (
        <Confirm
          action="Remove"
          working="Removing…"
          question="Its record goes, with the models that it may offer."
          onDo={async () => {
            await change("DELETE", at);
            go(to(["machines"]));
          }}
        />
      )}
      {open === "cordon" && <CordonDialog at={at} onClose={close} />}
      {open === "rename" && <RenameDialog at={at} name={machine} onClose={close} />}
      {open === "models" && <ModelsDialog at={at} record={record} onClose={close} />}
      {open === "pair" && <PairDialog name={machine} onClose={close} />}
    </>
  );
}

function CordonDialog({ at, onClose }: { readonly at: string; readonly onClose: () => void }) {
  const [reason, setReason] = useState("");
  return (
    <Dialog title="Cordon" onClose={onClose}>
      <p>It gets no new jobs. Those that run there go on: when none is left, it is drained.</p>
      <ActionForm
        action="Cordon"
        working="Cordoning…"
        onDo={async () => {
          await change("POST", `${at}/cordon`, reason === "" ? {} : { reason });
          onClose();
        }}
      >
        <TextField
          label="Reason"
          hint="Others see it beside the machine."
          value={reason}
          onText={setReason}
          placeholder="new fans"
        />
      </ActionForm>
    </Dialog>
  );
}

function RenameDialog({
  at,
  name,
  onClose,
}: {
  readonly at: string;
  readonly name: string;
  readonly onClose: () => void;
}) {
  const [next, setNext] = useState(name);
  const rename = async (): Promise<void> => {
    await change("POST", `${at}/rename`, { name: next });
    go(to(["machines", next]), { replace: true });
  };
  return (
    <Dialog title={`Rename ${name}`} onClose={onClose}>
      <p>No request is refused for it. Jobs under the old name have 30 seconds to finish.</p>
      <ActionForm action="Rename" working="Renaming…" onDo={rename}>
        <TextField label="New name" value={next} onText={setNext} required />
      </ActionForm>
    </Dialog>
  );
}

function ModelsDialog({
  at,
  record,
  onClose,
}: {
  readonly at: string;
  readonly record: Record;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState(record.models?.join(" ") ?? "");
  const models = listIn(text);
  return (
    <Dialog title="Allowed models" onClose={onClose}>
      <ActionForm
        action="Save"
        working="Saving…"
        onDo={async () => {
          await change("PATCH", at, { models: models.length === 0 ? null : models });
          onClose();
        }}
      >
        <TextField
          label="Models it may offer"
          hint="Names or patterns with *, such as llama* qwen*. Empty for all."
          value={text}
          onText={setText}
        />
      </ActionForm>
    </Dialog>
  );
}

function ModelsOf({ name }: { readonly name: string }) {
  const { answer, fault } = useAnswer<ModelListing>(`/models?machine=${encodeURIComponent(name)}`);
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
              cell: ({ id }) => (
                <a href={to(["models", "of", id])}>
                  <Name>{id}</Name>
                </a>
              ),
            },
            { name: "model server", wide: true, cell: ({ runtime }) => runtime ?? "–" },
            { name: "window", right: true, cell: ({ context_window: tokens }) => windowText(tokens) },
            { name: "size", right: true, cell: ({ size_mb: mb }) => sizeText(mb) },
            { name: "loaded", cell: ({ loaded }) => (loaded === null ? "–" : loaded ? "yes" : "no") },
          ]}
        />
      )}
    </section>
  );
}
