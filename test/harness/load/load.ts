import { Agent } from "node:http";
import { setTimeout as pass } from "node:timers/promises";
import { type Ask, askOverHttp, type Asked } from "./ask-over-http.ts";
import { LoadLedger } from "./load-ledger.ts";
import { scriptedChat, type ScriptedWish } from "./scripted-chat.ts";

interface LoadOptions {
  readonly baseUrl: string;
  readonly key: string;
  /** What the next request asks for, by its number. */
  readonly wish: (index: number) => ScriptedWish;
  /** How many there are in all; without it they come until the load is ended. */
  readonly count?: number;
  /** Closed: so many at once, each followed by the next. Open: so many a second, whatever becomes of them. */
  readonly pace: { readonly atOnce: number } | { readonly perSecond: number };
  /** How long each of the clients that ask in turn waits after a refusal, as one that is told to come back does. */
  readonly afterRefusalMs?: number;
  /** By which way each client gets its answer; by one plain request unless told. */
  readonly ask?: Ask;
  readonly onSettled?: (asked: Asked) => void;
}

const tickMs = 10;

/** Clients that ask and ask, each request with an answer of its own that is known beforehand. */
export class Load {
  readonly ledger = new LoadLedger();
  /** Resolves when all that was sent is settled. */
  readonly over: Promise<LoadLedger>;
  readonly startedAtMs = performance.now();
  readonly #options: LoadOptions;
  readonly #agent = new Agent({ keepAlive: true });
  #ended = false;

  constructor(options: LoadOptions) {
    this.#options = options;
    const { pace } = options;
    const asking = "atOnce" in pace ? this.#closed(pace.atOnce) : this.#open(pace.perSecond);
    this.over = asking.then(() => {
      this.#agent.destroy();
      return this.ledger;
    });
  }

  /** No more are sent; those under way come to their end. */
  end(): Promise<LoadLedger> {
    this.#ended = true;
    return this.over;
  }

  get #more(): boolean {
    return !this.#ended && this.ledger.sent < (this.#options.count ?? Infinity);
  }

  async #closed(atOnce: number): Promise<void> {
    const { afterRefusalMs = 0 } = this.#options;
    const client = async (): Promise<void> => {
      while (this.#more) {
        const { outcome } = await this.#ask();
        if (outcome === "refused" && afterRefusalMs > 0) await pass(afterRefusalMs);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, client));
  }

  async #open(perSecond: number): Promise<void> {
    const underWay = new Set<Promise<void>>();
    while (this.#more) {
      const due = ((performance.now() - this.startedAtMs) / 1_000) * perSecond;
      while (this.#more && this.ledger.sent < due) {
        const asked = this.#ask().then(() => void underWay.delete(asked));
        underWay.add(asked);
      }
      await pass(tickMs);
    }
    await Promise.all(underWay);
  }

  async #ask(): Promise<Asked> {
    const { baseUrl, key, wish, ask = askOverHttp, onSettled } = this.#options;
    const chat = scriptedChat(wish(this.ledger.sent));
    this.ledger.sent += 1;
    const onBegun = (): void => void (this.ledger.begun += 1);
    const asked = await ask(chat, { baseUrl, key, agent: this.#agent, onBegun });
    this.ledger.enter(asked);
    onSettled?.(asked);
    return asked;
  }
}
