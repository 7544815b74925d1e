import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { go, to } from "../address.ts";
import { change } from "../admin-api.ts";
import { Confirm, TextAction, WindowButton } from "../dialogs.tsx";
import { listIn } from "../forms.tsx";
import { fleet } from "../live.ts";
import { endingText } from "../quantity.ts";
import { PairDialog, patternsHint } from "./pair-machine.tsx";

interface Changed {
  readonly machine: string;
  /** The record of the machine; the first change makes one if there is none. */
  readonly record: ShownMachineRecord | undefined;
}

/** The changes of a machine. Each window has an address. */
export function MachineActions({ machine, record }: Changed) {
  const at = { params: { machine } };
  const running = fleet.value?.data.find((each) => each.machine === machine)?.running ?? 0;
  const { state = "unpaired", models, labels, external } = record ?? {};
  const isPaired = record?.public_key != null && (state === "paired" || state === "cordoned");
  return (
    <>
      {(state === "paired" || state === "unpaired") && <Cordon machine={machine} />}
      {(isPaired || state === "unpaired") && <Cordon machine={machine} drains />}
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
          param="name"
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
        title={`Allowed models of ${machine}`}
        confirm="Save"
        label="Models it may offer"
        param="models"
        suggest={{ of: "models", isList: true }}
        hint={patternsHint}
        initial={models?.join(" ") ?? ""}
        onText={(text) => {
          const given = listIn(text);
          return change("PATCH /machines/{machine}", { ...at, body: { models: given.length === 0 ? null : given } });
        }}
      />
      <TextAction
        name="labels"
        action="Labels"
        title={`Labels of ${machine}`}
        confirm="Save"
        label="Labels"
        hint="Routes name machines by labels."
        suggest={{ of: "labels", isList: true }}
        placeholder="none"
        initial={labels?.join(" ") ?? ""}
        onText={(text) => change("POST /machines/{machine}/labels", { ...at, body: { labels: listIn(text) } })}
      />
      <Confirm
        action={external ? "Mark as local" : "Mark as external"}
        effect={[
          <bdi>{machine}</bdi>,
          external
            ? " runs its models itself: any request may go there."
            : " has its models elsewhere, such as at a cloud: only routes that say so lead there, for keys that may leave the site.",
        ]}
        onDo={() => change("POST /machines/{machine}/external", { ...at, body: { external: !external } })}
      />
      {record !== undefined && !isPaired && (
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
      {record !== undefined && state === "unpaired" && (
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

/** Takes a machine out of service. A drain also hands over the answers that another machine can go on with. */
function Cordon({ machine, drains }: { readonly machine: string; readonly drains?: true }) {
  const about = drains
    ? "The machine gets no new requests, and hands over the answers that another machine can go on with. Others finish."
    : "The machine gets no new requests. Running ones finish there.";
  return (
    <TextAction
      name={drains ? "drain" : "cordon"}
      action={drains ? "Drain" : "Cordon"}
      title={`${drains ? "Drain" : "Cordon"} ${machine}`}
      about={`${about} The machine stays cordoned until somebody uncordons it.`}
      label="Reason"
      hint="Other operators see it beside the machine."
      placeholder="new fans"
      onText={(reason) =>
        change("POST /machines/{machine}/cordon", {
          params: { machine },
          body: { ...(reason !== "" && { reason }), ...(drains && { drains }) },
        })
      }
    />
  );
}
