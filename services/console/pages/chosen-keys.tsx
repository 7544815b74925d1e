import { useState } from "preact/hooks";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { type ApiFault, changeEach, useAnswer } from "../admin-api.ts";
import { Dialog } from "../dialogs.tsx";
import { ActionForm, Button } from "../forms.tsx";
import { endingText } from "../quantity.ts";
import { Badge, Expiry } from "../values.tsx";
import { TtlField } from "./key-terms.tsx";

interface KeysAction {
  readonly action: "extend" | "revoke";
  readonly keys: readonly ShownKey[];
}

/** The actions on several keys at once. */
export function ChosenKeys({ keys, onLeave }: { readonly keys: readonly ShownKey[]; readonly onLeave: () => void }) {
  const [asked, setAsked] = useState<KeysAction>();
  const close = (): void => {
    setAsked(undefined);
    onLeave();
  };
  return (
    <>
      {keys.length > 0 && (
        <div class="actions chosen">
          <small role="status">{countOf(keys)} chosen</small>
          <Button text="Extend" onDo={() => setAsked({ action: "extend", keys })} opens />
          <Button text="Revoke" look="danger-quiet" onDo={() => setAsked({ action: "revoke", keys })} opens />
          <Button text="Clear" look="quiet-button" onDo={onLeave} />
        </div>
      )}
      {asked && <ChosenDialog {...asked} onCancel={() => setAsked(undefined)} onClose={close} />}
    </>
  );
}

function countOf({ length }: readonly unknown[]): string {
  return length === 1 ? "1 key" : `${length} keys`;
}

interface ChosenDialogProps extends KeysAction {
  readonly onCancel: () => void;
  /** Called when the window closes after the action. */
  readonly onClose: () => void;
}

/** Asks once for all keys, and shows the result of each. */
function ChosenDialog({ action, keys, onCancel, onClose }: ChosenDialogProps) {
  const [ttl, setTtl] = useState("90d");
  const [faults, setFaults] = useState<readonly (ApiFault | undefined)[]>();
  const isFinal = action === "revoke";
  const run = async (): Promise<void> => {
    const sent = keys.map(({ id }) => ({ params: { id } }));
    const found = isFinal
      ? await changeEach("POST /keys/{id}/revoke", sent)
      : await changeEach(
          "POST /keys/{id}/extend",
          sent.map((each) => ({ ...each, body: { ttl } })),
        );
    const wrongTtl = found.find((fault) => fault?.param === "ttl");
    if (wrongTtl !== undefined) throw wrongTtl;
    setFaults(found);
  };
  if (faults !== undefined) {
    const failed = faults.filter((fault) => fault !== undefined);
    const done = isFinal ? "revoked" : "extended";
    const title = `${keys.length - failed.length} of ${countOf(keys)} ${done}`;
    return (
      <Dialog key="results" title={title} onClose={onClose}>
        <ul class="stack names">
          {keys.map(({ id, name }, place) => (
            <li key={id}>
              <Badge tone={faults[place] ? "bad" : "good"}>{faults[place] ? "failed" : done}</Badge> <bdi>{name}</bdi>{" "}
              <small>{faults[place]?.message}</small>
            </li>
          ))}
        </ul>
        <div class="actions">
          <Button text="Done" onDo={onClose} />
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={`${isFinal ? "Revoke" : "Extend"} ${countOf(keys)}?`} onClose={onCancel}>
      <ActionForm action={isFinal ? "Revoke" : "Extend"} danger={isFinal} onDo={run} onCancel={onCancel}>
        <ul class="stack names">
          {keys.map(({ id, name, expires_at: at }) => (
            <li key={id}>
              <bdi>{name}</bdi> <small>{isFinal ? id : <Expiry at={at} />}</small>
            </li>
          ))}
        </ul>
        {isFinal ? (
          <p>
            <Refused keys={keys} /> It cannot be undone.
          </p>
        ) : (
          <TtlField value={ttl} onText={setTtl} />
        )}
      </ActionForm>
    </Dialog>
  );
}

/** The effect on clients once gateways refuse these keys. */
export function Refused({ keys }: { readonly keys: readonly ShownKey[] }) {
  const { answer } = useAnswer("GET /requests/running", {});
  const ids = new Set<string>(keys.map(({ id }) => id));
  const hasAdmin = keys.some(({ kind }) => kind === "admin");
  const running = answer?.data.filter(({ key }) => ids.has(key)).length;
  return (
    <>
      Gateways refuse {keys.length === 1 ? "the key" : "these keys"}
      {hasAdmin && ", and the admin and viewer keys that an admin key issued, and end its sessions"}.{" "}
      {endingText(running)}
    </>
  );
}
