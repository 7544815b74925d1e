const kib = 1024;
const mib = 1024 * kib;

/** Every size of the wire. Whoever hits one is told its name and its value. */
export const limits = {
  /** A body up to this size travels inside its job; a larger one follows in parts of this size. */
  partBytes: 256 * kib,
  /** How much of a body may be under way without acknowledgement: more would delay a cancel on a thin line. */
  partWindowBytes: 1 * mib,
  /** The largest body of a job that an agent assembles. */
  jobBodyBytesMax: 64 * mib,
  /** The sum of all bodies that an agent assembles at once. */
  receivingBytesMax: 256 * mib,
  /** A data frame holds at most this much; a longer answer takes several. */
  dataFrameBytesMax: 256 * kib,
  /**
   * How far a stream may run ahead of what its client has taken: that much waits in the gateway at most, and as much in
   * the agent, which keeps it until the client has it.
   */
  streamCreditBytes: 256 * kib,
  /** Each time a client has taken so much more, its machine is told at once: it keeps what it sent until then. */
  creditStepBytes: 16 * kib,
  /** Of a slower stream it is told with the next lease, from this much on. */
  takenStepBytes: 1 * kib,
  /** The same of an answer that the gateway gathers, and takes as fast as it comes. */
  wholeCreditBytes: 1 * mib,
  /** The same of any answer that the gateway renders: what it makes of an event is some ten times as long. */
  renderedCreditBytes: 32 * kib,
  /** The text of an answer that is not streamed, so that its JSON stays below the next limit. */
  wholeAnswerCharactersMax: 16 * mib,
  /** The vectors of one answer as they are written: those of 2,048 texts with 4,096 numbers each fit, as base64. */
  embeddingsCharactersMax: 48 * mib,
  /** An answer that is not streamed may grow to this size. */
  wholeAnswerBytesMax: 64 * mib,
  /** What a machine may tell of its models, in bytes. */
  catalogueBytesMax: 2 * mib,
  /** Jobs that an agent holds at once, running, waiting and ended but not yet finished. */
  jobsPerAgentMax: 5_000,
  /** A broker must carry messages of this size: a data frame, a part, or a beat with a row for every job. */
  brokerPayloadBytesMin: 512 * kib,
} as const;
