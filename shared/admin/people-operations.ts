import { z } from "zod";
import { keyId } from "../keys/key-token.ts";
import { personId } from "../protocol/identifiers.ts";
import { givenLimits } from "../records/book-limits.ts";
import { enablePerson, removePerson, setPerson } from "../records/change-person.ts";
import { findRecord, type RecordChanged } from "../records/change-record.ts";
import { personForm, type PersonRecord, showPerson, shownPerson } from "../records/person-record.ts";
import { type AdminSite, changeOutcome, listRecords, onStore, reads, recordsOf, showChange } from "./operation.ts";

const changedPerson = shownPerson.extend(changeOutcome);

const readsOnePerson = {
  ...reads,
  params: z.strictObject({ person: personId.describe("The id of the person.") }),
  refusals: ["person_not_found"],
} as const;
const changesOnePerson = {
  ...readsOnePerson,
  method: "POST",
  forAdmins: true,
  answer: changedPerson,
  refusals: ["person_not_found", "person_change_refused"],
} as const;

/** The operations of the people who have signed in by OpenID Connect as members of teams. */
export const peopleOperations = {
  listPeople: onStore({
    ...reads,
    path: "/people",
    summary: "List the people who have signed in, each with their teams and limits",
    answer: recordsOf(z.array(shownPerson).describe("By id.")),
    async run(_, { people, teams }) {
      const all = await teams.list();
      return listRecords(
        (unread) => people.list(unread),
        (record) => showPerson(record, all),
      );
    },
  }),
  showPerson: onStore({
    ...readsOnePerson,
    path: "/people/{person}",
    summary: "Show a person",
    answer: shownPerson,
    run: async ({ params: { person } }, site) =>
      showPerson(await findRecord(personForm, person, site), await site.teams.list()),
  }),
  changePerson: onStore({
    ...changesOnePerson,
    method: "PATCH",
    path: "/people/{person}",
    summary:
      "Change the limits of a person that are named; null takes one away. They hold for all keys of the person together",
    body: z.strictObject(givenLimits),
    example: { rpm: 60, budget: { tokens: 1e6, per: "month" } },
    run: async ({ params: { person }, body }, site) => told(await setPerson(person, body, site), site),
  }),
  disablePerson: onStore({
    ...changesOnePerson,
    path: "/people/{person}/disable",
    summary: "Refuse a person and their keys until they are enabled again, and end their requests",
    run: async ({ params: { person } }, site) => told(await enablePerson(person, false, site), site),
  }),
  enablePerson: onStore({
    ...changesOnePerson,
    path: "/people/{person}/enable",
    summary: "Accept a person and their keys again",
    run: async ({ params: { person } }, site) => told(await enablePerson(person, true, site), site),
  }),
  removePerson: onStore({
    ...changesOnePerson,
    method: "DELETE",
    path: "/people/{person}",
    summary: "Forget the name and the e-mail address of a person, and revoke their keys; their sums of usage stay",
    answer: z.strictObject({ person: personId, state: z.literal("removed"), revoked: z.array(keyId) }),
    async run({ params: { person } }, site) {
      const { revoked } = await removePerson(person, site);
      return { person, state: "removed" as const, revoked: [...revoked] };
    },
  }),
};

async function told(changed: RecordChanged<PersonRecord>, { teams }: AdminSite) {
  const all = await teams.list();
  return showChange(changed, (record) => showPerson(record, all));
}
