import type { Case, Section } from "./row.ts";
import { goodChat, posted } from "./sent.ts";

const twice: Case["sent"] = (keys) => {
  const once = posted(goodChat, { headers: ["Idempotency-Key: the-same"] })(keys);
  return Buffer.concat([Buffer.from(once), Buffer.from(once)]);
};

export const volume: Section = {
  title: "volume and time",
  first: 136,
  last: 144,
  cases: [
    {
      rows: [143],
      what: "the same idempotency key twice, which is not offered, is two requests",
      sent: twice,
      told: [
        { status: 200, says: /token-0/ },
        { status: 200, says: /token-0/ },
      ],
    },
  ],
  elsewhere: [
    { rows: [136], file: "bad-inputs/slow-senders-are-told", name: "whoever is slow with its headers" },
    { rows: [136], file: "bad-inputs/slow-senders-are-told", name: "whoever is slow with its body" },
    { rows: [137], file: "bad-inputs/slow-senders-are-told", name: "connections on which nothing is sent" },
    {
      rows: [138],
      file: "unit/gateway/a-stream-is-written-as-it-comes",
      name: "a client that leaves too much unread is told of",
    },
    { rows: [139], file: "bad-inputs/clients-that-open-and-leave-keep-nothing", name: "leaves nothing taken" },
    { rows: [140], file: "system/limits-hold-over-all-gateways", name: "one runs, and the others are told why not" },
    { rows: [141], file: "contract/limits-book.contract", name: "as many of 50 requests at once run" },
    {
      rows: [144],
      file: "contract/known-models.contract",
      name: "above the limit the models seen the longest ago are forgotten",
    },
    { rows: [144], file: "bad-inputs/names-that-nobody-has-fill-nothing", name: "one row in the books" },
  ],
  unasserted: [{ row: 142, because: "a key is the only holder of limits: there are no tenants with several" }],
};
