import { Argument, type Command } from "commander";
import { bookLimitRows, limitsText } from "#shared/admin/key-terms.ts";
import { peopleOperations } from "#shared/admin/people-operations.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { countText } from "#shared/process/quantities.ts";
import { emailAddress } from "#shared/records/team-record.ts";
import { type PersonRecord, printOf, type ShownPerson } from "#shared/records/person-record.ts";
import { type CliCommand, commandIn, type CliContext } from "../terminal/command-line.ts";
import { givenTerms, limitsHelp, termOptions } from "../terminal/key-options.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { fieldLines, listed, type TextColumn } from "../terminal/table-text.ts";
import { type CommandStore, onStore, whichStoreHelp } from "../site/with-key-store.ts";

const { changePerson, disablePerson, enablePerson, listPeople, removePerson, showPerson } = peopleOperations;

export function peopleCommand(context: CliContext): Command {
  const people = commandIn("people", context).more(`
A person is in the list after the first sign-in by OpenID Connect as a member of a team.

Examples:
  trunkline people list
  trunkline people disable anna@example.org
${whichStoreHelp}`);
  addViews(people);
  const change = people.sub("change", "change the limits of a person", personArgument());
  for (const option of termOptions(true, bookLimitRows)) change.addOption(option);
  change
    .more(`
All keys of a person share these limits. Others stay as they are, and none takes a limit away.
${limitsHelp}

Example:
  trunkline people change anna@example.org --rpm 60 --budget 1M/month`)
    .does(onStore, async (store, text: string, given: object) => {
      const params = await findPerson(text, store);
      const answer = await runOn(store, changePerson, { params, body: givenTerms(given, bookLimitRows) });
      const remark = answer.outcome === "unchanged" ? "Nothing was changed: the limits were so before." : "";
      return { answer, text: personFields(answer), remark };
    });
  addStates(people);
  return people;
}

function personArgument(): Argument {
  return new Argument("<person>", "the e-mail address, or the id or its beginning in `trunkline people list`");
}

const idLeast = 6;

/** Finds the member that a text means: a known person, or an e-mail address. */
export async function memberOf(
  text: string,
  { people }: Pick<CommandStore, "people">,
): Promise<{ readonly person: string } | { readonly email: string }> {
  const email = emailAddress.safeParse(text);
  if (email.success) return { email: email.data };
  const begin = text.toLowerCase();
  return onlyOne(
    (await people.list()).filter(({ name }) => begin.length >= idLeast && name.startsWith(begin)),
    `an id that begins with '${text}': give an e-mail address, or ${idLeast} or more characters of an id in \`trunkline people list\`.`,
  );
}

function onlyOne([found, another]: readonly PersonRecord[], what: string): { readonly person: string } {
  if (found !== undefined && another === undefined) return { person: found.name };
  const reason = another === undefined ? "Nobody has" : "Several people have";
  throw new StartFailure(exitCodes.failed, `${reason} ${what}`);
}

/** Finds the known person that a text means. */
export async function findPerson(text: string, store: CommandStore): Promise<{ readonly person: string }> {
  const member = await memberOf(text, store);
  if ("person" in member) return member;
  return onlyOne(
    (await store.people.list()).filter(({ email }) => email === member.email),
    `the e-mail address ${member.email}: name a person by an id in \`trunkline people list\`.`,
  );
}

const columns: readonly TextColumn<ShownPerson>[] = [
  ["id", ({ person }) => printOf(person)],
  ["name", ({ name }) => name, "wrap"],
  ["e-mail", ({ email }) => email ?? "-", "wrap"],
  ["teams", ({ teams }) => teams.join(", ") || "-", "wrap"],
  ["limits", (person) => limitsText(person, countText) || "none", "wrap"],
  ["state", ({ state }) => state],
  ["signed in", ({ signed_in_at: at }) => utcTime(at)],
];

function addViews(people: CliCommand): void {
  people
    .command("list", { isDefault: true })
    .description("show everybody who has signed in")
    .more("\nExamples:\n  trunkline people list\n  trunkline people list --json")
    .does(onStore, async (store) => {
      const { data, unread } = await runOn(store, listPeople, {});
      return { answer: data, unread, ...listed(columns, data, "Nobody has signed in as a member yet.") };
    });
  people
    .sub("show", "show a person", personArgument())
    .more("\nExample:\n  trunkline people show anna@example.org")
    .does(onStore, async (store, text: string) => {
      const answer = await runOn(store, showPerson, { params: await findPerson(text, store) });
      return { answer, text: personFields(answer) };
    });
}

function personFields(shown: ShownPerson): string {
  return fieldLines([
    ["id", shown.person],
    ["name", shown.name],
    ["e-mail", shown.email],
    ["issuer", shown.issuer],
    ["subject", shown.subject],
    ["teams", shown.teams.join(", ") || "none"],
    ["limits", limitsText(shown, countText) || "none"],
    ["state", shown.state],
    ["first sign-in", utcTime(shown.created_at)],
    ["last sign-in", utcTime(shown.signed_in_at)],
    ["disabled", shown.disabled_at && utcTime(shown.disabled_at)],
  ]);
}

function addStates(people: CliCommand): void {
  people
    .sub("disable", "refuse a person and their keys until they are enabled again", personArgument())
    .more(`
Their requests that are under way end. They cannot sign in meanwhile.

Example:
  trunkline people disable anna@example.org`)
    .does(onStore, async (store, text: string) => {
      const answer = await runOn(store, disablePerson, { params: await findPerson(text, store) });
      return {
        answer,
        text: `${answer.name} ${answer.outcome === "unchanged" ? "was disabled before" : "is disabled"}`,
      };
    });
  people
    .sub("enable", "accept a person and their keys again", personArgument())
    .more("\nExample:\n  trunkline people enable anna@example.org")
    .does(onStore, async (store, text: string) => {
      const answer = await runOn(store, enablePerson, { params: await findPerson(text, store) });
      return { answer, text: `${answer.name} ${answer.outcome === "unchanged" ? "was not disabled" : "is enabled"}` };
    });
  people
    .sub("remove", "forget a person, and revoke their keys", personArgument())
    .more(`
Name and e-mail address are forgotten; sums of usage stay, under the id. Whom the provider still lets in may sign in again,
without the teams that they were added to by hand. To keep somebody out, disable them.

Example:
  trunkline people remove anna@example.org`)
    .does(onStore, async (store, text: string) => {
      const { person } = await findPerson(text, store);
      const answer = await runOn(store, removePerson, { params: { person } });
      return { answer, text: `${printOf(person)} is forgotten; keys revoked: ${answer.revoked.length}` };
    });
}
