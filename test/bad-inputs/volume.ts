import type { Case, Section } from "./row.ts";
import { goodChat, posted } from "./sent.ts";

const twice: Case["sent"] = (keys) => {
  const once = posted(goodChat, { headers: ["Idempotency-Key: the-same"] })(keys);
  return Buffer.concat([Buffer.from(once), Buffer.from(once)]);
};

export const volume: Section = {
  title: "volume and time",
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
};
