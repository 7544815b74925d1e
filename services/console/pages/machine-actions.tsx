import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { go, query, setQuery, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { Confirm, listIn, QueryButton, TextDialog } from "../forms.tsx";
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
          question="Its key is taken back for good, at all gateways, and its jobs end. To come back it has to be paired anew."
          onDo={() => change("POST /machines/{machine}/revoke", at)}
        />
      )}
      {state === "unpaired" && (
        <Confirm
          action="Remove"
          question="Its record goes, with the models that it may offer."
          onDo={async () => {
            await change("DELETE /machines/{machine}", at);
            go(to(["machines"]));
          }}
        />
      )}
      {open === "cordon" && (
        <TextDialog
          title="Cordon"
          about="It gets no new jobs. Those that run there go on: when none is left, it is drained."
          label="Reason"
          hint="Others see it beside the machine."
          placeholder="new fans"
          onText={(reason) =>
            change("POST /machines/{machine}/cordon", { ...at, body: reason === "" ? {} : { reason } })
          }
          onClose={close}
        />
      )}
      {open === "rename" && (
        <TextDialog
          title={`Rename ${machine}`}
          action="Rename"
          about="No request is refused for it. Jobs under the old name have 30 seconds to finish."
          label="New name"
          initial={machine}
          required
          onText={async (name) => {
            await change("POST /machines/{machine}/rename", { ...at, body: { name } });
            go(to(["machines", name]), { replace: true });
          }}
          onClose={close}
        />
      )}
      {open === "models" && (
        <TextDialog
          title="Allowed models"
          action="Save"
          label="Models it may offer"
          hint="Names or patterns with *, such as llama* qwen*. Empty for all."
          initial={record.models?.join(" ") ?? ""}
          onText={(text) => {
            const models = listIn(text);
            return change("PATCH /machines/{machine}", {
              ...at,
              body: { models: models.length === 0 ? null : models },
            });
          }}
          onClose={close}
        />
      )}
      {open === "pair" && <PairDialog name={machine} onClose={close} />}
    </>
  );
}
