import type { Section } from "./row.ts";

const keptApart = "integration/infra-nats-keeps-machines-apart";
const liars = "bad-inputs/machines-that-lie-harm-nobody";

export const hostileAgents: Section = {
  title: "machines that mean harm",
  first: 145,
  last: 155,
  cases: [],
  elsewhere: [
    {
      rows: [145],
      file: keptApart,
      name: "a machine cannot answer, announce, order or call the roll in another's name",
    },
    { rows: [146], file: keptApart, name: "a machine cannot listen to" },
    {
      rows: [147],
      file: liars,
      name: "frames of jobs that a machine does not have, has ended or never had reach nobody",
    },
    {
      rows: [148],
      file: "unit/gateway/the-roster-believes-the-newest-boot",
      name: "what an older one says is not heard",
    },
    {
      rows: [148],
      file: liars,
      name: "frames of jobs that a machine does not have, has ended or never had reach nobody",
    },
    { rows: [149], file: liars, name: "is not believed, and the others are listed as before" },
    { rows: [149], file: "bad-inputs/odd-names-stay-out-of-subjects", name: "is in no subject" },
    { rows: [150], file: liars, name: "is asked for its models seldom, and the others are served meanwhile" },
    { rows: [151], file: liars, name: "tokens has not ended in success" },
    { rows: [151], file: liars, name: "is believed only so far, and what was believed is logged" },
    {
      rows: [152],
      file: "unit/answer/a-chat-stream-keeps-each-event-in-one-line",
      name: "to OpenAI's client as one piece",
    },
    {
      rows: [153],
      file: "integration/quirks/an-error-has-one-form",
      name: "every error has message, type, param and code",
    },
    { rows: [154], file: liars, name: "with headers of its own has none of them sent on" },
    {
      rows: [154],
      file: "bad-inputs/a-runtimes-headers-go-nowhere",
      name: "extra headers and fields of a runtime reach no client",
    },
    { rows: [155], file: liars, name: "an answer to one client never reaches another" },
  ],
  unasserted: [],
};
