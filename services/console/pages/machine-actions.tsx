import { useState } from "preact/hooks";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { go, query, setQuery, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { ActionForm, Confirm, Dialog, FormDialog, listIn, QueryButton, TextField } from "../forms.tsx";
import { PairDialog } from "./pair-machine.tsx";

/** The changes of a machine. Each window has an address. */
export function MachineActions({ record }: { readonly record: ShownMachineRecord }) {
  const { machine, state } = record;
  const at = { params: { machine } };
  const open = query.value.get("do");
  const close = (): void => setQuery("do", undefined);
  const isPaired = state === "paired" || state === "cordoned";
  return (
    <>
      {state === "paired" && (
        <QueryButton name="do" value="cordon">
          Cordon
        </QueryButton>
      )}
      {state === "cordoned" && (
        <Confirm
          action="Uncordon"
          working="Uncordoning…"
          danger={false}
          question="It gets new jobs again."
          onDo={() => change("POST /machines/{machine}/uncordon", at)}
        />
      )}
      {isPaired && (
        <QueryButton name="do" value="rename">
          Rename
        </QueryButton>
      )}
      <QueryButton name="do" value="models">
        Allowed models
      </QueryButton>
      {!isPaired && (
        <QueryButton name="do" value="pair" isPrimary>
          Pair
        </QueryButton>
      )}
      {isPaired && (
        <Confirm
          action="Revoke"
          working="Revoking…"
          question="Its key is taken back for good, at all gateways, and its jobs end. To come back it has to be paired anew."
          onDo={() => change("POST /machines/{machine}/revoke", at)}
        />
      )}
      {state === "unpaired" && (
        <Confirm
          action="Remove"
          working="Removing…"
          question="Its record goes, with the models that it may offer."
          onDo={async () => {
            await change("DELETE /machines/{machine}", at);
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

interface DialogProps {
  readonly at: { readonly params: { readonly machine: string } };
  readonly onClose: () => void;
}

function CordonDialog({ at, onClose }: DialogProps) {
  const [reason, setReason] = useState("");
  return (
    <FormDialog
      title="Cordon"
      action="Cordon"
      working="Cordoning…"
      onDo={() => change("POST /machines/{machine}/cordon", { ...at, body: reason === "" ? {} : { reason } })}
      onClose={onClose}
    >
      <p>It gets no new jobs. Those that run there go on: when none is left, it is drained.</p>
      <TextField
        label="Reason"
        hint="Others see it beside the machine."
        value={reason}
        onText={setReason}
        placeholder="new fans"
      />
    </FormDialog>
  );
}

function RenameDialog({ at, name, onClose }: DialogProps & { readonly name: string }) {
  const [next, setNext] = useState(name);
  const rename = async (): Promise<void> => {
    await change("POST /machines/{machine}/rename", { ...at, body: { name: next } });
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

function ModelsDialog({ at, record, onClose }: DialogProps & { readonly record: ShownMachineRecord }) {
  const [text, setText] = useState(record.models?.join(" ") ?? "");
  const models = listIn(text);
  return (
    <FormDialog
      title="Allowed models"
      action="Save"
      working="Saving…"
      onDo={() => change("PATCH /machines/{machine}", { ...at, body: { models: models.length === 0 ? null : models } })}
      onClose={onClose}
    >
      <TextField
        label="Models it may offer"
        hint="Names or patterns with *, such as llama* qwen*. Empty for all."
        value={text}
        onText={setText}
      />
    </FormDialog>
  );
}
