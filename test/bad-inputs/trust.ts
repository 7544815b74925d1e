import type { Elsewhere, Section } from "./row.ts";

const held = (row: number, file: string, ...names: readonly string[]): readonly Elsewhere[] =>
  names.map((name) => ({ rows: [row], file, name }));

/** Doors, starvation and lies. SECURITY.md tells people what each row promises. */
export const trust: Section = {
  title: "who is let in, who starves, and who is believed",
  first: 156,
  last: 174,
  cases: [],
  elsewhere: [
    // 156: `tls://` forces TLS before a password is sent.
    ...held(
      156,
      "bad-inputs/a-broker-without-tls-learns-no-password",
      "never sees the password when it only claims to speak TLS",
      "learns no password when a server on loopback announces it as another of its cluster",
    ),
    ...held(
      156,
      "contract/connecting-to-nats-over-tls",
      "is refused with another authority of the same name",
      "passes on nothing that somebody on the line puts before the TLS handshake of a reconnect",
    ),
    // 157: no process uses an open broker on another host.
    ...held(157, "bad-inputs/a-broker-without-tls-learns-no-password", "is not asked at all without a credential"),
    ...held(157, "contract/connecting-to-nats-over-tls", "is refused when it admits clients without a password"),
    // 158: a second connection of a machine's user is reported.
    ...held(
      158,
      "bad-inputs/a-second-connection-of-a-machine-is-reported",
      "reports a silent listener under a machine's user within about a second, by its address",
      "says at its start that second connections are not detected when it has no system user",
    ),
    // 159: uploads are booked as they arrive, and limits are judged before a body is read.
    ...held(
      159,
      "bad-inputs/open-uploads-keep-nobody-out",
      "leave room for everybody's small chats",
      "a key over its request rate is refused before the body of its request has come",
      "a key with as many open uploads as it may have requests under way is refused one more",
    ),
    // 160: unread answers are bounded.
    ...held(
      160,
      "bad-inputs/unread-answers-are-cut",
      "above answerBytesMax the unread answer that holds the most is cut, and the others are not",
      "a client that reads a whole answer slowly gets all of it",
    ),
    // 161: a machine sends no more than its credit.
    ...held(
      161,
      "bad-inputs/a-machine-that-breaks-the-wire-is-blamed",
      "loses %s whole answers that exceed their credit",
      "loses a stream that exceeds the credit that its client leaves",
    ),
    // 162: a flood of presences is dropped unread.
    ...held(
      162,
      "bad-inputs/a-machine-that-announces-itself-without-end-stalls-nobody",
      "is dropped unread, counted and told once, and everybody else is served meanwhile",
    ),
    // 163: wrong keys lock out no valid key.
    ...held(
      163,
      "bad-inputs/guessers-are-not-listened-to",
      "a valid key that its gateway has not seen is served from an address that sent hundreds of wrong keys",
      "a valid admin key is served from an address that sent hundreds of wrong keys",
    ),
    // 164: a record bounds what a machine is believed to offer, and a false busy counts against it.
    ...held(
      164,
      "bad-inputs/a-machine-is-believed-as-far-as-its-record-permits",
      "loses all of them for which a record permits others, at every gateway at once, and is told why",
      "that says busy to each job it has read is asked last, and the log and the status tell why",
    ),
    // 165: reported usage is clamped.
    ...held(
      165,
      "bad-inputs/a-machine-books-no-more-than-a-request-can-use",
      "a machine that reports a trillion tokens does not empty the monthly budget of a key",
      "usage that was not believed is in the log and in a metric, and an honest report is in neither",
    ),
    // 166: no machine has a request refused elsewhere.
    ...held(
      166,
      "bad-inputs/one-machine-cannot-have-a-request-refused",
      "a machine that fails again and again does not have a request refused that other machines can answer",
      "two machines that die under the request of one key do not have the same request of another key refused",
    ),
    // 167: leaving a whole answer early is no way to free work.
    ...held(
      167,
      "bad-inputs/a-machine-books-no-more-than-a-request-can-use",
      "a whole answer that is left early is booked with its prompt and with the tokens that the beats told of",
    ),
    // 168: no key can test another key's prompts.
    ...held(
      168,
      "bad-inputs/one-key-cannot-test-what-another-asked",
      "the machine that answers does not tell a key whether another key asked the same prompt",
      "vLLM is sent a salt with every request, the same for one key at every gateway and another for each key",
    ),
    // 169: a scope judges the model that answers.
    ...held(
      169,
      "bad-inputs/a-scope-judges-the-model-that-answers",
      "with the scope *:latest does not reach an untagged model through its alias",
    ),
    // 170: secrets stay out of logs, environments and process lists.
    ...held(170, "bad-inputs/a-key-in-a-url-reaches-no-log", "is neither logged nor told"),
    ...held(
      170,
      "integration/secrets-come-from-files",
      "a gateway runs on systemd credentials alone, and its environment holds no secret",
      "the image's default command prints where its API key is, and not the key",
    ),
    ...held(170, "integration/infra-compose-file-holds-together", "shows no password in a command line"),
    // 171: revoking an admin key leaves nothing of it.
    ...held(
      171,
      "bad-inputs/a-revoked-admin-key-leaves-no-admin-key",
      "an admin key cannot extend itself, nor be extended by an admin key that it issued or that is a stranger",
      "a viewer key reads everything on the admin API, changes nothing and calls no models",
    ),
    // 172: the operations port keeps strangers out.
    ...held(
      172,
      "bad-inputs/the-operations-port-keeps-strangers-out",
      "a page that has its own name lead to the operations port reads nothing at %s",
      "metrics with a token are shown to its holder and to nobody else, not even with an admin key",
    ),
    // 173: the kind of a key is authenticated.
    ...held(
      173,
      "bad-inputs/a-store-writer-makes-no-admin-key",
      "cannot turn a model key into a key of kind %s",
      "cannot put the digest of an own model key into the record of an admin key",
    ),
    // 174: no type is guessed, connections are bounded, and only the gateway ends a stream.
    ...held(174, "bad-inputs/no-answer-is-left-to-be-sniffed", "nosniff"),
    ...held(174, "bad-inputs/connections-have-a-bound", "a new connection above TRUNKLINE_CONNECTIONS_MAX is closed"),
    ...held(
      174,
      "bad-inputs/a-machine-that-breaks-the-wire-is-blamed",
      "loses its stream at %s, of which no byte reaches the client",
      "passes on a text that holds [DONE], escaped inside a delta",
    ),
  ],
  unasserted: [],
};

/** The section of requests that must stay at the site. SECURITY.md tells people what its rows promise. */
export const leaving: Section = {
  title: "what leaves the site and its gateways",
  first: 195,
  last: 196,
  cases: [],
  elsewhere: [
    // 195: nothing goes to a machine that is elsewhere, unless a route and the key both say so.
    ...held(
      195,
      "bad-inputs/a-cloud-gets-nothing-unasked",
      "answers nothing else, is in no list, and its models are as unknown as ones that nobody has",
      "gets no request that fails at home, but for a route and a key that ask for it",
      "gets nothing from a key that lost the right, within a second",
    ),
    ...held(
      195,
      "unit/gateway/nothing-leaves-the-site-unasked",
      "a request leaves the site only by a route that says so, for a key issued for it, within its scopes",
      "stays when %s",
    ),
    // 196: only gateways read, test or make news of placements.
    ...held(
      196,
      "unit/gateway/gateways-tell-each-other-what-they-placed",
      "placements cannot be read on the wire, and no message repeats the bytes of another",
      "a message that is repeated, changed, sent in another gateway's name or old changes nothing",
    ),
    ...held(
      196,
      "integration/infra-nats-keeps-machines-apart",
      "gateways tell each other what they have placed, and no machine hears or says it",
    ),
  ],
  unasserted: [],
};
