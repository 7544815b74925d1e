import type { Fault } from "#shared/fault/fault.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Reads requests of one API: a usual one with the fields of a test on top, from JSON, as every request is. */
export function reading<Read>(readRequest: (request: Record<string, unknown>) => Read, usual: Fields) {
  const read = (fields: Fields = {}): Read => readRequest(JSON.parse(JSON.stringify({ ...usual, ...fields })));
  const thrownBy = (fields: Fields): Fault => faultThrownBy(() => read(fields));
  /** The fault of such a request, as a client can tell it from others: its code and where it is. */
  const faultOf = (fields: Fields): Pick<Fault, "code" | "param"> => {
    const { code, param } = thrownBy(fields);
    return { code, param };
  };
  return { read, thrownBy, faultOf };
}
