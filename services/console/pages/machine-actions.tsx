import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { go, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { Confirm, TextAction, WindowButton } from "../dialogs.tsx";
import { listIn } from "../forms.tsx";
import { fleet } from "../live.ts";
import { PairDialog, patternsHint } from "./pair-machine.tsx";

/** The changes of a machine. Each window has an address. */
export function MachineActions({ record: { machine, state, models } }: { readonly record: ShownMachineRecord }) {
  const at = { params: { machine } };
  const running = fleet.value?.data.find((each) => each.machine === machine)?.running ?? 0;
  const isPaired = state === "paired" || state === "cordoned";
  return (
    <>
      {state === "paired" && (
        <TextAction
          name="cordon"
          action="Cordon"
          about="The machine gets no new requests. Running ones finish, and then it is drained."
          label="Reason"
          hint="Other operators see it beside the machine."
          placeholder="new fans"
          onText={(reason) =>
            change("POST /machines/{machine}/cordon", { ...at, body: reason === "" ? {} : { reason } })
          }
        />
      )}
      {state === "cordoned" && (
        <Confirm
          action="Uncordon"
          object={machine}
          effect="The machine gets new requests again."
          onDo={() => change("POST /machines/{machine}/uncordon", at)}
        />
      )}
      {isPaired && (
        <TextAction
          name="rename"
          action="Rename"
          title={`Rename ${machine}`}
          about="No request is refused meanwhile. Jobs under the old name have 30 seconds to finish."
          label="New name"
          initial={machine}
          required
          onText={async (name) => {
            await change("POST /machines/{machine}/rename", { ...at, body: { name } });
            go(to(["machines", name]), { replace: true });
          }}
        />
      )}
      <TextAction
        name="models"
        action="Allowed models"
        confirm="Save"
        label="Models it may offer"
        hint={patternsHint}
        initial={models?.join(" ") ?? ""}
        onText={(text) => {
          const given = listIn(text);
          return change("PATCH /machines/{machine}", { ...at, body: { models: given.length === 0 ? null : given } });
        }}
      />
      {!isPaired && (
        <WindowButton
          text="Pair"
          value="pair"
          isPrimary
          window={(close) => <PairDialog name={machine} onClose={close} />}
        />
      )}
      {isPaired && (
        <Confirm
          action="Revoke"
          object={machine}
          isFinal
          effect={`${endingText(running)} To come back, the machine must be paired again.`}
          onDo={() => change("POST /machines/{machine}/revoke", at)}
        />
      )}
      {state === "unpaired" && (
        <Confirm
          action="Remove"
          object={machine}
          isFinal
          effect="Its record is deleted, with the list of models that it may offer."
          onDo={async () => {
            await change("DELETE /machines/{machine}", at);
            go(to(["machines"]));
          }}
        />
      )}
    </>
  );
}

function endingText(running: number): string {
  if (running === 0) return "It runs no answer now.";
  return running === 1 ? "Its running answer ends." : `Its ${running} running answers end.`;
}
