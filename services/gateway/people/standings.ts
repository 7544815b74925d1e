import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { PersonRecord, PersonStore } from "#shared/records/person-record.ts";
import type { TeamRecord, TeamStore } from "#shared/records/team-record.ts";
import type { RunningRequests, Standing } from "../keys/authenticate.ts";
import { NamedRecords } from "./named-records.ts";
import { type KeyPeople, refusalOf, standingOf } from "./standing.ts";

interface StandingsOptions {
  readonly store: {
    readonly teams: Pick<TeamStore, "list" | "find">;
    readonly people: Pick<PersonStore, "list" | "find">;
  };
  readonly running: Pick<RunningRequests, "cutPerson">;
  /** Time for which the keys of a person work after the last sign-in. */
  readonly memberMs: number;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Pick<Log, "info" | "warn">;
}

/** Time for which a refusal stands that the store has confirmed. */
const refusedForMs = 1_000;

/**
 * The standing of each key, by its team and its person as this gateway knows them. A change holds from the next request on,
 * and disabling a person ends their requests at once.
 */
export class Standings {
  readonly teams: NamedRecords<TeamRecord>;
  readonly people: NamedRecords<PersonRecord>;
  readonly #options: StandingsOptions;
  /** The standing of each key, and the records that it follows from. */
  readonly #known = new WeakMap<KeyRecord, Standing & KeyPeople>();
  readonly #refusedUntilMs = new WeakMap<KeyRecord, number>();

  constructor(options: StandingsOptions) {
    this.#options = options;
    const { store, running, log } = options;
    this.teams = new NamedRecords({ store: store.teams, of: "teams", log });
    this.people = new NamedRecords({
      store: store.people,
      of: "people",
      onChange: ({ name, disabledAt }) => {
        const message = "The person of this API key has been disabled.";
        if (disabledAt !== undefined) running.cutPerson(name, new Fault("key_invalid", { message }));
      },
      log,
    });
  }

  /** The records to follow, by their kinds. */
  get followed() {
    return { team: this.teams.follow, person: this.people.follow };
  }

  async load(): Promise<void> {
    await this.teams.load();
    await this.people.load();
  }

  /**
   * Returns what holds for a valid key, and throws the fault of a key that is refused. A key without team and person is itself.
   * The store confirms a refusal: a team or a sign-in of a moment ago may not be heard of here.
   */
  of(key: KeyRecord): Standing | Promise<Standing> {
    const standing = this.#judge(key);
    return standing instanceof Fault ? this.#confirm(key, standing) : standing;
  }

  async #confirm(key: KeyRecord, refusal: Fault): Promise<Standing> {
    const { team, person } = key;
    const nowMs = this.#options.clock.wall();
    if (nowMs < (this.#refusedUntilMs.get(key) ?? 0)) throw refusal;
    try {
      if (team !== undefined) await this.teams.read(team);
      if (person !== undefined) await this.people.read(person);
    } catch {
      throw refusal;
    }
    const standing = this.#judge(key);
    if (!(standing instanceof Fault)) return standing;
    this.#refusedUntilMs.set(key, nowMs + refusedForMs);
    throw standing;
  }

  #judge(key: KeyRecord): Standing | Fault {
    const known = this.#known.get(key);
    const { team: teamName, person: id } = key;
    if (known !== undefined && teamName === undefined && id === undefined) return known;
    const team = teamName === undefined ? undefined : this.teams.get(teamName);
    const person = id === undefined ? undefined : this.people.get(id);
    const { clock, memberMs } = this.#options;
    const refusal = refusalOf(key, { team, person }, { nowMs: clock.wall(), memberMs });
    if (refusal !== undefined) return refusal;
    if (known !== undefined && known.team === team && known.person === person) return known;
    const standing = { ...standingOf(key, { team, person }), team, person };
    this.#known.set(key, standing);
    return standing;
  }
}
