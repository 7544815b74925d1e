import { useState } from "preact/hooks";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { ShownModel } from "#shared/protocol/model.ts";
import { to } from "../address.ts";
import { type ApiFault, change, faultOf, useAnswer, work } from "../admin-api.ts";
import { Confirm } from "../dialogs.tsx";
import { Button } from "../forms.tsx";
import { FaultNotice } from "../parts.tsx";
import { mayChange } from "../session.ts";
import type { Column } from "../table.tsx";

/** The column with the actions on a model of a machine, for those who may change models. */
export function useOfferActions(): readonly Column<ShownModel>[] {
  const { answer } = useAnswer("GET /keeps", {});
  if (!mayChange()) return [];
  const wishOf = ({ id }: ShownModel) => answer?.data.find(({ model }) => model === id);
  return [["actions", (offer) => <OfferActions offer={offer} wish={wishOf(offer)} />]];
}

interface OfferProps {
  readonly offer: ShownModel;
  readonly wish: AnswerTo<"GET /keeps">["data"][number] | undefined;
}

/** Loads, unloads, pins and removes a model on one machine. The machine's owner permits each of them, or does not. */
function OfferActions({ offer: { id, machine, loaded, kept }, wish }: OfferProps) {
  const [status, setStatus] = useState("");
  const [fault, setFault] = useState<ApiFault>();
  const begin = async (action: () => Promise<unknown>): Promise<void> => {
    setFault(undefined);
    setStatus("Asking the machine…");
    await action().catch((error: unknown) => setFault(faultOf(error)));
    setStatus("");
  };
  const act = (action: "load" | "unload" | "remove") =>
    begin(() =>
      work({ params: { machine, action }, body: { model: id } }, { onLine: (line) => setStatus(line.status) }),
    );
  const isPinned = wish?.machines?.includes(machine) === true;
  const pin = (machines: readonly string[]): Promise<unknown> => {
    const params = { model: id };
    if (machines.length === 0) return change("DELETE /keeps/{model}", { params });
    return change("PUT /keeps/{model}", { params, body: { copies: machines.length, machines: [...machines] } });
  };
  const others = wish?.machines?.filter((each) => each !== machine) ?? [];
  const removal = [
    "The machine ",
    <bdi>{machine}</bdi>,
    " deletes the model from its disk. Other machines keep theirs.",
  ];
  return (
    <>
      <div class="actions">
        {loaded === true ? (
          <Button text="Unload" onDo={() => act("unload")} />
        ) : (
          <Button text="Load" onDo={() => act("load")} />
        )}
        {wish?.machines !== null && (
          <Button
            text={isPinned ? "Unpin" : "Pin"}
            label={`${isPinned ? "Unpin" : "Pin"} ${id} on ${machine}`}
            onDo={() => begin(() => pin(isPinned ? others : [...others, machine]))}
          />
        )}
        <Confirm action="Remove" object={id} effect={removal} isFinal onDo={() => act("remove")} />
      </div>
      {isPinned && !kept && <a href={to(["models", "kept"])}>Pinned, and not kept yet: see why</a>}
      {status !== "" && <small role="status">{status}</small>}
      <FaultNotice fault={fault} />
    </>
  );
}
