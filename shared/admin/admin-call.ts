import type { z } from "zod";
import type { AdminApi } from "./admin-api.ts";
import type { AdminOperation } from "./operation.ts";

/** The operations of an API by method and path, such as `GET /keys/{id}`. */
export type CallsOf<Api extends Readonly<Record<string, AdminOperation>>> = {
  readonly [Name in keyof Api as `${Api[Name]["method"]} ${Api[Name]["path"]}`]: Api[Name];
};
type Calls = CallsOf<AdminApi>;
export type CallName = keyof Calls;
export type AnswerTo<Of extends CallName> = z.output<Calls[Of]["answer"]>;
export type SentTo<Of extends CallName> = SentParts<Calls[Of]>;

type SentPart<Name extends string, Schema extends z.ZodType> = string extends keyof z.input<Schema>
  ? object
  : object extends z.input<Schema>
    ? { readonly [Each in Name]?: z.input<Schema> }
    : { readonly [Each in Name]: z.input<Schema> };
/** The parts of a request for an operation. */
export type SentParts<Of extends AdminOperation> = SentPart<"params", Of["params"]> &
  SentPart<"query", Of["query"]> &
  SentPart<"body", Of["body"]>;
interface Parts {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

/** A request to the admin API below its prefix. */
export interface AdminCall {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

/** Makes a request for an operation. Undefined and empty fields of its query are left out. */
export function callOf(
  { method, path }: { readonly method: string; readonly path: string },
  sent: Parts = {},
): AdminCall {
  const params = new Map<string, unknown>(Object.entries(Object(sent.params)));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params.get(name))));
  const given = Object.entries(Object(sent.query)).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return { method, path: query === "" ? filled : `${filled}?${query}`, body: sent.body };
}
