import { setPrice } from "../harness/set-records.ts";
import { alertForm, newSigningSecret, sealAlert } from "#shared/records/alert-record.ts";
import { setRecord } from "#shared/records/change-record.ts";
import { addMember, setTeam } from "#shared/records/change-team.ts";
import { enablePerson, setPerson, signedIn } from "#shared/records/change-person.ts";
import { personIdOf } from "#shared/records/person-record.ts";
import { dayMs, systemClock } from "#shared/process/clock.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";

const issuer = "https://login.example.org/realms/work";
const people = [
  "Anna Lindqvist",
  "Jonas Weber",
  "Mira Okafor",
  "Lena Fischer",
  "Tomás Ferreira de Albuquerque",
] as const;
type Person = (typeof people)[number];

/** Returns the id of somebody at the provider of the site. */
export function idOf(name: Person): string {
  return personIdOf(issuer, subjectOf(name));
}

function subjectOf(name: Person): string {
  return `u${people.indexOf(name) + 1_000}`;
}

const prices = {
  "qwen*": { input: 200_000, cached: 20_000, output: 600_000 },
  "gpt-oss:20b": { input: 50_000, output: 200_000 },
  "openai/*": { input: 150_000, cached: 15_000, output: 450_000 },
  "gemma3:27b external": { input: 1_250_000, output: 10_000_000, request: 1_000 },
  "whisper*": { second: 100 },
};
const teams = {
  research: {
    scopes: ["qwen*", "openai/*", "gemma3:27b"],
    budget: { tokens: 900_000_000, per: "month" },
    spend: { millionths: 60_000_000, per: "month" },
    rpm: 600,
    own_limits: { concurrency: 4, spend: { millionths: 5_000_000, per: "day" } },
    claims: ["Data Science", "ml-research"],
  },
  support: { scopes: ["gpt-oss*", "openai/*"], spend: { millionths: 1_000_000, per: "day" }, own_keys: 0 },
  "platform-engineering-emea": { machines: ["studio-4090"], concurrency: 8 },
} as const;

/** Adds an alert target. */
export async function addAlert(name: string, url: string, store: OpenedKeyStore): Promise<void> {
  const sealed = sealAlert(name, { url, secret: newSigningSecret() }, store.peppers);
  const { host, protocol } = new URL(url);
  const format = protocol === "https:" ? "slack" : "standard";
  const record = { host, format, on: ["machine-away", "budget", "gateway-away"], sealed } as const;
  await setRecord(alertForm, { name }, () => record, { ...store, actor: { by: "mira" } });
}

/** Gives a site its prices, teams and people. */
export async function addPeople(store: OpenedKeyStore): Promise<void> {
  const by = { ...store, clock: { wall: () => Date.now() - 20 * dayMs }, actor: { by: "mira" } };
  for (const [name, given] of Object.entries(prices)) await setPrice(name, given, by);
  for (const [name, given] of Object.entries(teams)) await setTeam(name, { ...given, isNew: true }, by);
  for (const name of people) {
    const email = name === "Lena Fischer" ? undefined : `${name.split(" ")[0]?.toLowerCase()}@example.org`;
    const claims = name.startsWith("Anna") ? ["Data Science"] : [];
    const clock = { wall: () => Date.now() - people.indexOf(name) * 3 * dayMs - 7_000_000 };
    await signedIn({ issuer, subject: subjectOf(name), called: name, email, claims }, { ...by, clock });
  }
  for (const name of people.slice(1, 4)) await addMember("research", { person: idOf(name) }, by);
  await addMember("support", { email: "new.colleague@example.org" }, by);
  await addMember("platform-engineering-emea", { person: idOf("Jonas Weber") }, by);
  const now = { ...by, clock: systemClock };
  await setPerson(idOf("Jonas Weber"), { budget: { tokens: 2_000_000, per: "day" }, rpm: 60 }, now);
  await setTeam("research", { spend: { millionths: 80_000_000, per: "month" }, isNew: false }, now);
  await enablePerson(idOf("Tomás Ferreira de Albuquerque"), false, now);
}
