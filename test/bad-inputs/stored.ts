import type { Case, Section, Told } from "./row.ts";
import { got, postedJson } from "./sent.ts";

const path = "/v1/responses";
const never = `resp_${"a".repeat(22)}`;
const notFound = { status: 404, code: "response_not_found", says: /no such response/ } as const;

function asks(row: number, what: string, fields: object, told: Told): Case {
  const sent = postedJson({ model: "scripted", input: "/script tokens=1", ...fields }, { path });
  return { rows: [row], what, sent: ({ storing: key }) => sent({ key }), told: [told] };
}

function reads(row: number, what: string, of: string, told: Told): Case {
  return { rows: [row], what, sent: ({ storing: key }) => got(`${path}/${of}`)({ key }), told: [told] };
}

const previous = (id: unknown) => ({ previous_response_id: id });
const refers = (id: unknown) => ({ input: [{ type: "item_reference", id }] });
const wrong = (code: string, param: string): Told => ({ status: 400, code, param });

const ids: readonly Case[] = [
  reads(209, "a response that never was", never, notFound),
  reads(209, "the input of one", `${never}/input_items`, notFound),
  asks(209, "a turn after one", previous(never), { ...notFound, param: "previous_response_id" }),
  asks(209, "an item of one", refers(`msg_${"a".repeat(22)}0`), { ...notFound, param: "input[0].id" }),
  reads(210, "an id that is none", "resp_%2E%2E%2F*%20", notFound),
  reads(210, "an id that is longer than any", `resp_${"a".repeat(1_000)}`, notFound),
  asks(210, "a turn after an id that is none", previous("../*"), { ...notFound, param: "previous_response_id" }),
  asks(210, "a turn after no text", previous(7), wrong("invalid_type", "previous_response_id")),
  asks(210, "an item whose id is none", refers("msg_1"), { ...notFound, param: "input[0].id" }),
  asks(210, "an item without an id", refers(undefined), { ...notFound, param: "input[0].id" }),
  asks(210, "an id that only a nested field names", { metadata: previous(never) }, { status: 200 }),
];

const queries: readonly Case[] = [
  ...["limit=0", "limit=101", "limit=1.5", "limit=many", "limit=1&limit=2"].map((query) =>
    reads(211, query, `${never}/input_items?${query}`, wrong("invalid_value", "limit")),
  ),
  reads(211, "an order that is none", `${never}/input_items?order=random`, wrong("invalid_value", "order")),
  reads(212, "a stored response as a stream", `${never}?stream=true`, wrong("unsupported_parameter", "stream")),
  asks(
    212,
    "a conversation that never was",
    { conversation: "conv_1" },
    { ...notFound, says: /no such conversation/, param: "conversation" },
  ),
  asks(212, "a conversation that is a number", { conversation: 7 }, wrong("invalid_type", "conversation")),
  asks(
    212,
    "a conversation and a turn",
    { conversation: "conv_1", ...previous(never) },
    wrong("invalid_value", "conversation"),
  ),
  asks(
    212,
    "a conversation without a store",
    { conversation: "conv_1", store: false },
    wrong("invalid_value", "store"),
  ),
  asks(212, "an answer without its client", { background: true }, wrong("unsupported_value", "background")),
];

export const stored: Section = {
  title: "stored responses",
  cases: [...ids, ...queries],
};
