import { Fault } from "../fault/fault.ts";
import { type RecordChanged, type RecordSite, setRecord } from "./change-record.ts";
import { type KeepRecord, keepForm, type KeepStore } from "./keep-record.ts";

/** Has machines keep a model in memory, whatever was wished for it before. */
export async function setKeep(
  name: string,
  { copies, machines }: Pick<KeepRecord, "copies" | "machines">,
  site: RecordSite & { readonly keeps: KeepStore },
): Promise<RecordChanged<KeepRecord>> {
  if (machines !== undefined && copies > machines.length) {
    throw new Fault("keep_change_refused", {
      message: `${copies} copies need as many machines, and ${machines.length} are named. Name more, or ask for fewer copies.`,
      param: "copies",
    });
  }
  return setRecord(keepForm, { name }, () => ({ copies, machines }), site);
}
