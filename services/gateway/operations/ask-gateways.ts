import { z } from "zod";
import type { Broker, BrokerMessage, Subscription } from "#shared/broker/broker.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { seal, unseal } from "#shared/keys/seal.ts";
import type { Clock } from "#shared/process/clock.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { newToken, tokenCharacters, tokenText } from "#shared/protocol/identifiers.ts";
import { answersSubject, gatewaysSubject } from "#shared/protocol/subjects.ts";
import type { KeyStore } from "#shared/records/key-store.ts";

/** A question or its answer. Both have the token of the question. */
const letter = z.object({ ask: z.string(), content: z.unknown() });

interface Dependencies {
  readonly broker: Pick<Broker, "publish" | "subscribe">;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly peppers: Pick<Peppers, "placementsKeys">;
  /** Lists the gateways of the site. */
  readonly keys: Pick<KeyStore, "gateways">;
  readonly clock: Pick<Clock, "after">;
  /** Answers a question of another gateway. Without an answer that gateway waits in vain. */
  readonly answer: (question: unknown) => Promise<unknown>;
}

interface AskTerms {
  readonly withinMs: number;
  /** True for an answer after which no other is waited for. */
  readonly isEnough?: (answer: unknown) => boolean;
}

/**
 * Asks the other gateways of the site something, over the broker. Messages are sealed, so that only gateways read and make
 * them. A gateway that is alone asks nobody.
 */
export class GatewayAsker {
  readonly #parts: Dependencies;
  readonly #asked = new Map<string, (from: string, answer: unknown) => void>();
  readonly #ends: readonly Subscription[];

  constructor(parts: Dependencies) {
    this.#parts = parts;
    const { broker, gateway, answer } = parts;
    this.#ends = [
      broker.subscribe(gatewaysSubject, (message) => {
        const { from, ask, content } = this.#open(message);
        if (ask === undefined || from === gateway) return;
        const send = (told: unknown): void => this.#send(answersSubject(from), { ask, content: told });
        void answer(content)
          .then(send)
          .catch(() => undefined);
      }),
      broker.subscribe(answersSubject(gateway), (message) => {
        const { from, ask = "", content } = this.#open(message);
        this.#asked.get(ask)?.(from, content);
      }),
    ];
  }

  /** Returns the answers of the other gateways, and the hosts of those that did not answer in time. */
  async ask(question: unknown, { withinMs, isEnough }: AskTerms) {
    const { keys, gateway, clock } = this.#parts;
    const all = await keys.gateways();
    const silent = new Map(all.map(({ token, name }) => [token, name]));
    const answers: unknown[] = [];
    silent.delete(gateway);
    if (all.length < 2) return { answers, silent: [] };
    const { promise, resolve } = Promise.withResolvers<void>();
    const ask = newToken();
    this.#asked.set(ask, (from, answer) => {
      answers.push(answer);
      silent.delete(from);
      if (silent.size === 0 || isEnough?.(answer)) resolve();
    });
    const late = clock.after(withinMs, resolve);
    try {
      this.#send(gatewaysSubject, { ask, content: question });
      await promise;
      return { answers, silent: [...silent.values()] };
    } finally {
      late.cancel();
      this.#asked.delete(ask);
    }
  }

  close(): void {
    for (const each of this.#ends) each.end();
  }

  /** Sends a message: the name of this gateway, and a letter that it seals with its key for this subject alone. */
  #send(subject: string, sent: z.output<typeof letter>): void {
    const { broker, gateway, peppers } = this.#parts;
    const [key] = peppers.placementsKeys(gateway);
    const sealed = seal(Buffer.from(JSON.stringify(sent)), key, subject);
    broker.publish(subject, Buffer.concat([Buffer.from(gateway), sealed]));
  }

  /** Opens a message. One that no gateway of this site has made has no `ask`. */
  #open({ subject, data }: BrokerMessage): { readonly from: string } & Partial<z.output<typeof letter>> {
    const from = Buffer.from(data.subarray(0, tokenCharacters)).toString();
    const keys = tokenText.test(from) ? this.#parts.peppers.placementsKeys(from) : [];
    const opened = unseal(data.subarray(tokenCharacters), keys, subject);
    return { from, ...letter.safeParse(opened && jsonIn(opened.bytes.toString())).data };
  }
}
