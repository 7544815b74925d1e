import { z } from "zod";
import { Fault } from "../fault/fault.ts";
import { keyId } from "../keys/key-token.ts";
import { personId, teamName } from "../protocol/identifiers.ts";
import { addMember, dropMember, type Member, removeTeam, setTeam } from "../records/change-team.ts";
import { findRecord } from "../records/change-record.ts";
import { emailAddress, givenTeam, showTeam, shownTeam, teamForm } from "../records/team-record.ts";
import { changeOutcome, listRecords, onStore, reads, recordsOf, showChange, yesOrNo } from "./operation.ts";

const changedTeam = shownTeam.extend(changeOutcome);

const readsOneTeam = {
  ...reads,
  params: z.strictObject({ team: teamName.describe("The name of the team.") }),
  refusals: ["team_not_found"],
} as const;
const changesOneTeam = {
  ...readsOneTeam,
  forAdmins: true,
  answer: changedTeam,
  refusals: ["team_not_found", "person_not_found", "team_change_refused"],
} as const;

const member = {
  person: personId.optional().describe("The id of a person."),
  email: emailAddress.optional().describe("The verified e-mail address of a person, who may sign in later."),
};

/** The operations of teams. */
export const teamOperations = {
  listTeams: onStore({
    ...reads,
    path: "/teams",
    summary: "List the teams, each with its terms and the members that were added by hand",
    answer: recordsOf(z.array(shownTeam).describe("By name.")),
    run: (_, { teams }) => listRecords((unread) => teams.list(unread), showTeam),
  }),
  showTeam: onStore({
    ...readsOneTeam,
    path: "/teams/{team}",
    summary: "Show a team",
    answer: shownTeam,
    run: async ({ params: { team } }, site) => showTeam(await findRecord(teamForm, team, site)),
  }),
  createTeam: onStore({
    ...changesOneTeam,
    method: "POST",
    path: "/teams",
    summary: "Make a team, whose terms hold for all its keys together",
    params: reads.params,
    body: z.strictObject({ team: teamName.describe("The name of the team."), ...givenTeam }),
    status: 201,
    example: { team: "research", scopes: ["llama*"], budget: { tokens: 1e7, per: "month" }, own_keys: 10 },
    run: async ({ body: { team, ...given } }, site) =>
      showChange(await setTeam(team, { ...given, isNew: true }, site), showTeam),
  }),
  changeTeam: onStore({
    ...changesOneTeam,
    method: "PATCH",
    path: "/teams/{team}",
    summary: "Change the terms of a team that are named; null takes one away. They hold from the next request on",
    body: z.strictObject(givenTeam),
    example: { machines: ["attic"], rpm: 600, budget: null },
    run: async ({ params: { team }, body }, site) =>
      showChange(await setTeam(team, { ...body, isNew: false }, site), showTeam),
  }),
  removeTeam: onStore({
    ...changesOneTeam,
    method: "DELETE",
    path: "/teams/{team}",
    summary: "Remove a team; refused while keys of it work, unless they are to be revoked with it",
    query: z.strictObject({
      with_keys: yesOrNo.default(false).describe("True if the keys of the team are to be revoked too."),
    }),
    answer: z.strictObject({ team: teamName, state: z.literal("removed"), revoked: z.array(keyId) }),
    async run({ params: { team }, query }, site) {
      const { revoked } = await removeTeam(team, { withKeys: query.with_keys }, site);
      return { team, state: "removed" as const, revoked: [...revoked] };
    },
  }),
  addMember: onStore({
    ...changesOneTeam,
    method: "POST",
    path: "/teams/{team}/members",
    summary:
      "Add a person to a team, or an e-mail address that makes a member of the first person who signs in with it",
    body: z.strictObject(member),
    example: { email: "anna@example.org" },
    run: async ({ params: { team }, body }, site) => showChange(await addMember(team, oneOf(body), site), showTeam),
  }),
  dropMember: onStore({
    ...changesOneTeam,
    method: "DELETE",
    path: "/teams/{team}/members",
    summary: "Drop a person or an e-mail address from a team; the person's keys of the team are refused from then on",
    query: z.strictObject(member),
    run: async ({ params: { team }, query }, site) => showChange(await dropMember(team, oneOf(query), site), showTeam),
  }),
};

function oneOf({
  person,
  email,
}: {
  readonly person?: string | undefined;
  readonly email?: string | undefined;
}): Member {
  if (person !== undefined && email === undefined) return { person };
  if (email !== undefined && person === undefined) return { email };
  const message = "Give either 'person' or 'email'.";
  throw new Fault("invalid_value", { message, param: "person" });
}
