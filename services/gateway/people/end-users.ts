import type { IncomingHttpHeaders } from "node:http";
import { Fault } from "#shared/fault/fault.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { seal } from "#shared/keys/seal.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { type Clock, dayMs } from "#shared/process/clock.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import { type EndUsers, otherEndUsers } from "#shared/usage/end-users.ts";
import { budgetPeriodAt } from "../limits/budgets.ts";

/** The headers in which Open WebUI and LiteLLM name the person who asks. */
const userHeaders = ["x-openwebui-user-id", "x-litellm-end-user-id"] as const;

/** The end user that a field of a request names. */
export interface NamedUser {
  readonly field: string;
  /** Undefined for a value that is no text. */
  readonly name: string | undefined;
}

interface ReadFields {
  readonly user?: NamedUser | undefined;
  readonly ignored: readonly string[];
}

/** A request as far as its end user is concerned. */
interface UsersRequest {
  readonly key: KeyRecord;
  /** Counts the request for an end user from now on, in its book if it has limits. */
  isFor(endUser: string, book: Book | undefined): void;
}

interface EndUserBooksOptions {
  readonly endUsers: EndUsers;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "now" | "wall">;
}

const shownCharactersMax = 64;
/** End users that a gateway remembers as noted. Beyond it they are noted again. */
const notedMax = 200_000;
/** The time between two attempts while the store is away. Users have books of their own meanwhile. */
const noteAgainMs = 1_000;

/** The books of the end users of apps' keys. An end user is believed for a key whose record says so, and for no other. */
export class EndUserBooks {
  readonly #options: EndUserBooksOptions;
  /** The end users that were noted on the day. */
  readonly #noted = new Set<string>();
  #dayAtMs = 0;
  #failedAtMs = -Infinity;

  constructor(options: EndUserBooksOptions) {
    this.#options = options;
  }

  /**
   * Puts the book of the end user that a request names in front of its books. A request that names nobody counts for its key
   * alone. Returns the request as it was read; a field that was believed is not among the ignored ones.
   */
  async enter<Asked extends ReadFields>(
    request: UsersRequest,
    headers: IncomingHttpHeaders,
    asked: Asked,
  ): Promise<Asked> {
    const { key } = request;
    if (key.endUsers === undefined) return asked;
    const named = key.endUsers === "header" ? inHeader(headers) : asked.user;
    if (named === undefined) return asked;
    const { field, name } = named;
    if (name === undefined) {
      const message = `'${field}' names the end user of this key's requests, and must be a text.`;
      throw new Fault("invalid_type", { message, param: field });
    }
    const endUser = await this.#endUserOf(key, name);
    request.isFor(endUser, bookOf(key, endUser));
    const [believed] = field.split(".");
    return { ...asked, ignored: asked.ignored.filter((each) => each !== believed) };
  }

  async #endUserOf(key: KeyRecord, name: string): Promise<string> {
    const { peppers, endUsers, clock } = this.#options;
    const digest = peppers.current.endUserDigest(key.id, name);
    const endUser = `${key.id}:${digest}`;
    const nowMs = clock.wall();
    const dayAtMs = nowMs - (nowMs % dayMs);
    if (dayAtMs !== this.#dayAtMs || this.#noted.size >= notedMax) this.#noted.clear();
    this.#dayAtMs = dayAtMs;
    if (this.#noted.has(endUser)) return endUser;
    if (clock.now() - this.#failedAtMs < noteAgainMs) return endUser;
    const shown = onOneLine(name.slice(0, shownCharactersMax));
    const sealed = seal(Buffer.from(shown), peppers.current.endUsersKey(key.id), endUser);
    const isMonthly = key.perUserBudget?.per === "month" || key.perUserSpend?.per === "month";
    const periodAtMs = budgetPeriodAt(isMonthly ? "month" : "day", nowMs).beginsAtMs;
    try {
      if (!(await endUsers.note({ keyId: key.id, digest, sealed, dayAtMs, periodAtMs })))
        return `${key.id}:${otherEndUsers}`;
      if (dayAtMs === this.#dayAtMs) this.#noted.add(endUser);
    } catch (error) {
      if (Fault.from(error).code !== "backend_unavailable") throw error;
      this.#failedAtMs = clock.now();
    }
    return endUser;
  }
}

function inHeader(headers: IncomingHttpHeaders): NamedUser | undefined {
  const field = userHeaders.find((each) => headers[each]);
  return field && { field, name: String(headers[field]) };
}

function bookOf({ perUserRpm, perUserBudget, perUserSpend }: KeyRecord, endUser: string): Book | undefined {
  const limits = { requestsPerMinute: perUserRpm, budget: perUserBudget, spend: perUserSpend };
  if (Object.values(limits).every((limit) => limit === undefined)) return undefined;
  const noun = endUser.endsWith(otherEndUsers)
    ? "This user, with all others beyond the bound of this key,"
    : "This user";
  return { id: `user:${endUser}`, limits, noun };
}
