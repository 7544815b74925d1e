import { Argument, type Command, Option } from "commander";
import { z } from "zod";
import { bookLimitRows, limitsText } from "#shared/admin/key-terms.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { teamOperations } from "#shared/admin/team-operations.ts";
import { commaList } from "#shared/process/config.ts";
import { countText } from "#shared/process/quantities.ts";
import { teamName } from "#shared/protocol/identifiers.ts";
import { boundMachines, scopes } from "#shared/records/key-record.ts";
import { givenTeam, isMember, newTeam, type ShownTeam, shownTeam } from "#shared/records/team-record.ts";
import { type CliCommand, commandIn, type CliContext, none, readBy, readByUnless } from "../terminal/command-line.ts";
import { givenTerms, limitsHelp, scopesHelp, termOptions } from "../terminal/key-options.ts";
import { countWithin, utcTime } from "../terminal/quantity-text.ts";
import { type Field, fieldLines, listed, type TextColumn } from "../terminal/table-text.ts";
import { type CommandStore, onStore, whichStoreHelp } from "../site/with-key-store.ts";
import { memberOf } from "./people.ts";

const { addMember, changeTeam, createTeam, dropMember, listTeams, removeTeam, showTeam } = teamOperations;

export function teamsCommand(context: CliContext): Command {
  const teams = commandIn("teams", context).more(`
Examples:
  trunkline teams create research --scopes 'llama*' --budget 10M/month --claims research-group
  trunkline teams add research anna@example.org
  trunkline keys issue --team research --name ci
${whichStoreHelp}`);
  addTerms(teams);
  addViews(teams);
  addMembers(teams);
  teams
    .sub("remove", "remove a team", teamArgument())
    .option("--with-keys", "revoke its keys too")
    .more(`
It is refused while keys of the team work. With --with-keys they are revoked, and their requests end.

Example:
  trunkline teams remove research --with-keys`)
    .does(onStore, async (store, team: string, { withKeys = false }: { readonly withKeys?: boolean }) => {
      const answer = await runOn(store, removeTeam, { params: { team }, query: { with_keys: String(withKeys) } });
      const { length } = answer.revoked;
      return { answer, text: `${team} is no team any more${length === 0 ? "" : `; keys revoked with it: ${length}`}` };
    });
  return teams;
}

function teamArgument(): Argument {
  return new Argument("<team>", "the name of the team").argParser(readBy(teamName));
}

interface TermOptions {
  readonly scopes?: readonly string[];
  readonly machines?: readonly string[] | typeof none;
  readonly ownKeys?: number;
  readonly ownDays?: number;
  readonly claims?: readonly string[];
}

function teamOptions(isChange: boolean): readonly Option[] {
  const { keys, days } = newTeam.own;
  const usual = (value: string) => (isChange ? "" : ` (default: ${value})`);
  const count = (flag: string, words: string) =>
    new Option(`--${flag} <count>`, words).argParser(readBy(countWithin({ min: 0 })));
  return [
    new Option("--scopes <patterns>", `the models its keys may call, with commas between${usual("*")}`).argParser(
      readBy(commaList.pipe(scopes)),
    ),
    new Option("--machines <names>", "the machines that may serve them, with commas between, or any").argParser(
      readByUnless(["any", none], commaList.pipe(boundMachines)),
    ),
    ...termOptions(true, bookLimitRows),
    count("own-keys", `the most keys that a member may make${usual(String(keys))}`),
    count("own-days", `the longest time for which such a key is valid, in days${usual(String(days))}`),
    ...termOptions(true, bookLimitRows, { begin: "own-", whose: "for each key of a member: " }),
    new Option("--claims <values>", "the values of the OpenID claim that make a member, or none").argParser(
      readBy(
        z
          .string()
          .transform((text) => (text === none ? [] : commaList.parse(text)))
          .pipe(givenTeam.claims.unwrap()),
      ),
    ),
  ];
}

function bodyOf(given: TermOptions) {
  const { scopes: granted, machines, ownKeys, ownDays, claims } = given;
  return {
    scopes: granted,
    machines: machines === none ? null : machines,
    ...givenTerms(given, bookLimitRows),
    own_keys: ownKeys,
    own_days: ownDays,
    own_limits: givenTerms(given, bookLimitRows, "own-"),
    claims,
  };
}

function addTerms(teams: CliCommand): void {
  const create = teams.sub("create", "make a team", teamArgument());
  for (const option of teamOptions(false)) create.addOption(option);
  create
    .more(`
All keys of a team share its limits, and may call what both the key and the team allow. --claims takes values of the OpenID
claim TRUNKLINE_OIDC_CLAIM, as the provider sends them; "trunkline teams add" adds a member by hand. Members make keys of
their own, within --own-keys, --own-days and the other limits that begin with "own".
${scopesHelp}
${limitsHelp}

Examples:
  trunkline teams create research --scopes 'llama*' --budget 10M/month --claims research-group
  trunkline teams create apps --rpm 600 --machines attic,cellar --own-keys 0`)
    .does(onStore, async (store, team: string, given: TermOptions) => {
      const answer = await runOn(store, createTeam, { body: { team, ...bodyOf(given) } });
      return { answer, text: await teamFields(answer, store) };
    });
  const change = teams.sub("change", "change the terms of a team", teamArgument());
  for (const option of teamOptions(true)) change.addOption(option);
  change
    .more(`
Other terms stay as they are; none takes a limit away. All gateways follow within a second: the terms hold from the next
request on, and answers that run go on.

Examples:
  trunkline teams change research --budget 20M/month --rpm none
  trunkline teams change research --machines any`)
    .does(onStore, async (store, team: string, given: TermOptions) => {
      const answer = await runOn(store, changeTeam, { params: { team }, body: bodyOf(given) });
      const remark = answer.outcome === "unchanged" ? "Nothing was changed: the team was so before." : "";
      return { answer, text: await teamFields(answer, store), remark };
    });
}

const columns: readonly TextColumn<ShownTeam>[] = [
  ["team", ({ team }) => team],
  ["scopes", (team) => team.scopes.join(", "), "wrap"],
  ["limits", (team) => limitsText(team, countText) || "none", "wrap"],
  ["own keys", ({ own_keys: keys, own_days: days }) => `${keys} for ${days}d`],
  ["claims", ({ claims }) => claims.join(", ") || "-", "wrap"],
  ["by hand", ({ members }) => String(members.length), "right"],
  ["invited", ({ invited }) => String(invited.length), "right"],
];

function addViews(teams: CliCommand): void {
  teams
    .command("list", { isDefault: true })
    .description("show every team")
    .more("\nExamples:\n  trunkline teams list\n  trunkline teams list --json")
    .does(onStore, async (store) => {
      const { data, unread } = await runOn(store, listTeams, {});
      return {
        answer: data,
        unread,
        ...listed(columns, data, "There is no team yet; `trunkline teams create` makes one."),
      };
    });
  teams
    .sub("show", "show a team with its members", teamArgument())
    .more("\nExample:\n  trunkline teams show research")
    .does(onStore, async (store, team: string) => {
      const answer = await runOn(store, showTeam, { params: { team } });
      return { answer, text: await teamFields(answer, store) };
    });
}

/** Formats a team, one field a line, with its members by name. */
async function teamFields(answer: ShownTeam, { people }: CommandStore): Promise<string> {
  const shown = shownTeam.strip().parse(answer);
  const members = (await people.list()).filter((person) => isMember(person, shown));
  return fieldLines([
    ["team", shown.team],
    ["scopes", shown.scopes.join(", ")],
    ["machines", shown.machines?.join(", ") ?? "any"],
    ["limits", limitsText(shown, countText) || "none"],
    ["own keys", `${shown.own_keys} a member, for ${shown.own_days} days at most`],
    ["limits of own keys", limitsText(shown.own_limits, countText) || "none"],
    ["claims", shown.claims.join(", ") || "none"],
    ...members.map(({ name, called }): Field => ["member", `${called} (${name.slice(0, 12)})`]),
    ...shown.invited.map((email): Field => ["invited", email]),
    ["created", utcTime(shown.created_at)],
    ["changed", utcTime(shown.changed_at)],
  ]);
}

function addMembers(teams: CliCommand): void {
  const member = () =>
    new Argument("<member>", "the e-mail address, or the id or its beginning in `trunkline people list`");
  teams
    .sub("add", "add a member to a team by hand", teamArgument(), member())
    .more(`
An e-mail address that nobody has signed in with waits. The first person who signs in with it, verified by the provider, is
the member from then on, whatever their address is later.

Examples:
  trunkline teams add research anna@example.org
  trunkline teams add research 3f2a91c07be4`)
    .does(onStore, async (store, team: string, text: string) => {
      const answer = await runOn(store, addMember, { params: { team }, body: await memberOf(text, store) });
      const isInvited = answer.invited.includes(text.toLowerCase());
      const said = isInvited ? "is a member from the first sign-in on" : "is a member";
      return { answer, text: `${text} ${said} of the team ${team}` };
    });
  teams
    .sub("drop", "drop a member who was added by hand", teamArgument(), member())
    .more(`
The keys of this person in the team are refused from the next request on, and answers that run go on.

Example:
  trunkline teams drop research anna@example.org`)
    .does(onStore, async (store, team: string, text: string) => {
      const answer = await runOn(store, dropMember, { params: { team }, query: await memberOf(text, store) });
      return { answer, text: `${text} is no member of the team ${team} any more` };
    });
}
