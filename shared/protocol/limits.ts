const kib = 1024;
const mib = 1024 * kib;

/** All sizes of the wire. Error messages name the limit and its value. */
export const limits = {
  /** A body up to this size travels inside its job message; a larger body follows in parts of this size. */
  partBytes: 256 * kib,
  /** Bytes of a body that may be unacknowledged at once. More would delay a cancel on a slow connection. */
  partWindowBytes: 1 * mib,
  /** The largest body of a job that an agent assembles. */
  jobBodyBytesMax: 64 * mib,
  /** The sum of all bodies that an agent assembles at once. */
  receivingBytesMax: 256 * mib,
  /** Bounds the payload of a data frame; a longer answer takes several frames. */
  dataFrameBytesMax: 256 * kib,
  /**
   * Bytes of records that the machine of a stream may send ahead of its client. A rendered record is some 40 times as
   * long. A record of `recordTextMax` characters always fits.
   */
  streamCreditBytes: 16 * kib,
  /** A stream's machine gets credit only while its client has fewer rendered bytes than this unread. */
  unreadBytesMax: 64 * kib,
  /**
   * A gateway sends a credit once a client has read this many more bytes. The machine keeps what it sent until then.
   */
  creditStepBytes: 4 * kib,
  /** A lease reports a slower client once it has read this many more bytes. */
  takenStepBytes: 1 * kib,
  /** Bytes of records of a resumable answer that its machine keeps from the first on. A longer answer cannot be resumed. */
  resumableBytes: 256 * kib,
  /** Bounds how often one answer is resumed: each time its machine sends all of it again. */
  resumesMax: 64,
  /** Credit of an answer that the gateway gathers, and reads as fast as it arrives. */
  wholeCreditBytes: 2 * mib,
  /** Bounds the text of one record of an answer: a vector, or logprobs. Longer texts take several records. */
  answerRecordCharactersMax: 1 * mib,
  /** Bounds the text of an answer that is not streamed, so that its JSON stays below `wholeAnswerBytesMax`. */
  wholeAnswerCharactersMax: 16 * mib,
  /** Bounds the encoded vectors of one answer. 2,048 texts with vectors of 4,096 numbers fit as base64. */
  embeddingsCharactersMax: 48 * mib,
  /** Bounds an answer that is not streamed. */
  wholeAnswerBytesMax: 64 * mib,
  /** Bounds a machine's presence message: several times its usual size. */
  presenceBytesMax: 16 * kib,
  /** Bounds a machine's catalogue. */
  catalogueBytesMax: 2 * mib,
  /** Bounds a message of a gateway's placements. */
  placementsBytesMax: 256 * kib,
  /** Messages of placements that a gateway sends at once. Prompts beyond them stay its own knowledge. */
  placementsMessagesMax: 4,
  /** Hashes of a placed prompt that a gateway tells. The rest of a longer prompt stays its own knowledge. */
  placedBlocksMax: 16_384,
  /** Jobs that an agent holds at once, running, waiting and ended but not yet finished. */
  jobsPerAgentMax: 5_000,
  /** A broker must carry messages of this size: a data frame, a part, or a beat with a row for every job. */
  brokerPayloadBytesMin: 512 * kib,
} as const;
